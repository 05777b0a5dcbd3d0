package spec

import "slices"

// Provider is a set of hosts with a name: what one service needs.
type Provider struct {
	Name  string
	Doc   string
	Keys  []string // variables that hold a key for it
	Hosts []string // HOST or HOST:PORT, 443 when there is none; an API's own first
}

// AgentProvider is the provider that stands for what the deployment's agent
// itself needs: its row's API and Login.
const AgentProvider = "agent"

// PackageManagers are the providers whose hosts come from that tool's own
// configuration on the machine that deploys, so that a company's mirror is what
// is permitted, and no list of ours is out of date.
var PackageManagers = []string{"npm", "go", "pip"}

// Providers is the table of providers. docs/egress.md is made from it.
var Providers = []Provider{
	{"anthropic", "Anthropic's API", []string{"ANTHROPIC_API_KEY"}, []string{"api.anthropic.com"}},
	{"openai", "OpenAI's API", []string{"OPENAI_API_KEY"}, []string{"api.openai.com"}},
	{"google", "Google's Gemini and Vertex APIs", []string{"GEMINI_API_KEY"}, []string{"generativelanguage.googleapis.com", "aiplatform.googleapis.com", "*.aiplatform.googleapis.com", "oauth2.googleapis.com"}},
	{"openrouter", "OpenRouter's API", []string{"OPENROUTER_API_KEY"}, []string{"openrouter.ai"}},
	{"github", "GitHub: git over https and ssh, its API, archives and LFS", nil, []string{
		"github.com", "github.com:22", "api.github.com", "codeload.github.com", "uploads.github.com", "raw.githubusercontent.com", "objects.githubusercontent.com",
		"media.githubusercontent.com", "lfs.github.com", "github-cloud.githubusercontent.com", "release-assets.githubusercontent.com",
	}},
	{"gitlab", "gitlab.com: git over https and ssh, its API", nil, []string{"gitlab.com", "gitlab.com:22"}},
}

// ProviderNames lists every provider that an entry may name.
func ProviderNames() []string {
	names := []string{AgentProvider}
	for _, p := range Providers {
		names = append(names, p.Name)
	}
	return append(names, PackageManagers...)
}

func lookupProvider(name string) (Provider, bool) {
	i := slices.IndexFunc(Providers, func(p Provider) bool { return p.Name == name })
	if i < 0 {
		return Provider{}, false
	}
	return Providers[i], true
}

// ProviderOfKey is the provider that the variable called key holds a key for.
func ProviderOfKey(key string) (Provider, bool) {
	i := slices.IndexFunc(Providers, func(p Provider) bool { return slices.Contains(p.Keys, key) })
	if i < 0 {
		return Provider{}, false
	}
	return Providers[i], true
}
