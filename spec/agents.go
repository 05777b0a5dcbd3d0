package spec

import (
	"fmt"
	"strings"
)

// Agent is one row of the agent table: everything the project knows about one
// coding agent. Help, completions, volumes, images and docs are made from it.
type Agent struct {
	Name       string // what a user types, and the folder under images/agents
	Title      string // its makers' name for it
	Executable string // base name on PATH inside the image

	// Packages are the npm packages, one a platform or one for all, whose
	// package.json in the image tells the installed version.
	Packages []string

	// Headless is the argv of an unattended run. The task is always on stdin:
	// as an argument, "--version" would exit 0 without any work.
	Headless []string

	// Interactive is the argv inside tmux. TaskArgs are put before a task given
	// as the last argument; where TakesTask is false a task is never passed.
	Interactive []string
	TaskArgs    []string
	TakesTask   bool

	// State lists what must survive recreation, as volumes of the deployment.
	State []Volume

	// ConfigDir is where canonical configuration goes, relative to the home.
	ConfigDir string

	// Environment is what the agent needs set to keep its state in State.
	Environment map[string]string

	// What it reaches over the network with its makers' defaults, HOST or
	// HOST:PORT: the models' API, what a login needs, and where its makers count.
	// They stand in the locked versions' own files; pi and opencode reach whatever
	// provider the user's key is for.
	API, Login, Telemetry []string

	// BaseURLs are the variables that name another API, to be reached instead.
	// Elsewhere are those that make it use one that no table here knows.
	// AnyProvider: its models' API follows from which of Keys is given.
	BaseURLs, Elsewhere []string
	AnyProvider         bool

	// Screen says what its screen in a terminal tells, the first that matches; none
	// where that has not been tried.
	Screen []ScreenRule

	// Keys are the environment names it reads a provider's key from; none of
	// them given for a headless run is worth a warning.
	Keys []string
}

// Agents is the agent table, the default first. The argv were tried with the
// versions locked under images/agents.
var Agents = []Agent{
	{
		Name: "claude", Title: "Claude Code", Executable: "claude",
		Packages: []string{"@anthropic-ai/claude-code-linux-x64", "@anthropic-ai/claude-code-linux-arm64"},
		// Without the bypass it asks nobody, does nothing, and exits 0.
		Headless:    []string{"claude", "--permission-mode", "bypassPermissions", "-p"},
		Interactive: []string{"claude"},
		TaskArgs:    []string{"--"}, TakesTask: true,
		State:     []Volume{{Suffix: "claude", Path: ContainerHome + "/.claude"}},
		ConfigDir: ".claude",
		// Keeps ~/.claude.json inside the volume: a single file cannot be a
		// mount, its atomic rename fails with EBUSY.
		Environment: map[string]string{"CLAUDE_CONFIG_DIR": ContainerHome + "/.claude"},
		API:         []string{"api.anthropic.com"},
		Login:       []string{"claude.ai", "claude.com", "platform.claude.com"},
		Telemetry:   []string{"http-intake.logs.us5.datadoghq.com", "browser-intake-us5-datadoghq.com", "*.ingest.us.sentry.io"},
		BaseURLs:    []string{"ANTHROPIC_BASE_URL"},
		Elsewhere:   []string{"CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX"},
		Keys:        []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"},
		// With a draft below an answer that comes in, its screen says neither.
		Screen: []ScreenRule{
			{ScreenWaiting, 1, `Esc to (cancel|exit)`},
			{ScreenWaiting, 20, `^ *─{9,}\n(?: .*\n)* +❯ \d+\. .*(?:\n .*)*\z`}, // no prompt follows
			{ScreenWorking, 1, `esc to interrupt`},
			{ScreenWorking, 40, `^[·✢✳✶✻✽*] .*….*\n(?:  .*\n)*` + claudeBox},
			{ScreenIdle, 6, `^─{3}.*\n❯([\s\x{a0}]Resend your message to try again)?\n─{3}.*` + belowBox},
			{ScreenIdle, 40, `^(?:[^ ●\n]| [^ \n]|  ⎿).*\n(?: {20}.*\n)?` + claudeBox},
		},
	},
	{
		Name: "codex", Title: "OpenAI Codex", Executable: "codex",
		Packages: []string{"@openai/codex-linux-x64", "@openai/codex-linux-arm64"},
		// Its own sandbox cannot start without capabilities; the container is
		// the sandbox. "-" reads the task from stdin.
		Headless:    []string{"codex", "exec", "--dangerously-bypass-approvals-and-sandbox", "--skip-git-repo-check", "-"},
		Interactive: []string{"codex", "--sandbox", "danger-full-access", "--ask-for-approval", "on-request"},
		TaskArgs:    []string{"--"}, TakesTask: true,
		State:     []Volume{{Suffix: "codex", Path: ContainerHome + "/.codex"}},
		ConfigDir: ".codex",
		API:       []string{"api.openai.com", "chatgpt.com"},
		Login:     []string{"auth.openai.com"},
		Telemetry: []string{"ab.chatgpt.com", "*.ingest.us.sentry.io"},
		BaseURLs:  []string{"OPENAI_BASE_URL"},
		Keys:      []string{"OPENAI_API_KEY", "CODEX_API_KEY"},
		// While an answer comes in and no draft is typed, its screen says neither.
		Screen: []ScreenRule{
			{ScreenWaiting, 1, `^ *([Pp]ress enter to (confirm|continue)|enter \S+ · esc )|\| esc to interrupt$`},
			{ScreenWaiting, 2, `\| enter to submit .*\n  esc to interrupt$`},
			{ScreenIdle, 40, `^  Worked for .* • .*\n(?: .*\n)*` + codexPrompt},
			{ScreenIdle, 40, `^■ .*\n(?:[^•◦›\n].*\n)*` + codexPrompt},
			{ScreenIdle, 40, `^  >_ OpenAI Codex.*\n(?: .*\n)*` + codexPrompt}, // nothing asked yet
			{ScreenWorking, 1, `^  tab to queue message`},
			{ScreenWorking, 40, `^[•◦] .* • esc to interrupt\).*\n(?:[^›\n].*\n)*` + codexPrompt},
		},
	},
	{
		Name: "pi", Title: "pi", Executable: "pi",
		Packages:    []string{"@earendil-works/pi-coding-agent"},
		Headless:    []string{"pi", "-p"},
		Interactive: []string{"pi"},
		TakesTask:   true,
		State:       []Volume{{Suffix: "pi", Path: ContainerHome + "/.pi"}},
		ConfigDir:   ".pi/agent", // not ~/.pi, where it is ignored
		Telemetry:   []string{"pi.dev"},
		AnyProvider: true,
		Keys:        []string{"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "GEMINI_API_KEY"},
		Screen: []ScreenRule{
			{ScreenWaiting, 2, `^ .*\bescape/ctrl\+c cancel\n─+$`},
			{ScreenWaiting, 4, `^  .*Escape/Ctrl\+C to cancel\n─+` + belowBox},
			{ScreenWorking, 40, `^── [⠀-⣿] .*\n` + inBox + `─{3}.*` + belowBox},
			{ScreenIdle, 40, `^─{3}.*\n` + inBox + `─{3}.*` + belowBox},
		},
	},
	{
		Name: "opencode", Title: "opencode", Executable: "opencode",
		Packages: []string{"opencode-linux-x64", "opencode-linux-arm64"},
		// Without --auto a write outside the workspace is rejected, exit 0.
		Headless:    []string{"opencode", "run", "--auto"},
		Interactive: []string{"opencode"},
		TakesTask:   false, // its positional argument is a project path
		State: []Volume{
			{Suffix: "opencode", Path: ContainerHome + "/.config/opencode"},
			{Suffix: "opencode-data", Path: ContainerHome + "/.local/share/opencode"},
		},
		ConfigDir:   ".config/opencode",
		API:         []string{"models.dev", "models.opencode.ai", "opencode.ai"}, // which models there are; a provider's own API is not among them
		AnyProvider: true,
		Keys:        []string{"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "GEMINI_API_KEY"},
		// A draft is never in the last four lines.
		Screen: []ScreenRule{
			{ScreenWaiting, 4, `^  ┃   (Allow once +Allow always|Confirm +Cancel)\b`},
			{ScreenWaiting, 4, `^  ┃  .*\benter \S+ +.*esc dismiss$`},
			{ScreenWorking, 4, `^   [⬝■]{8} `},
			{ScreenIdle, 4, `^ [^┃\n]*\bctrl\+p commands\b`},
		},
	},
}

// AgentNames returns the names of all agents in table order.
func AgentNames() []string {
	names := make([]string, len(Agents))
	for i, a := range Agents {
		names[i] = a.Name
	}
	return names
}

// LookupAgent returns the row called name, or an *Error that suggests the
// nearest one.
func LookupAgent(name string) (Agent, error) {
	for _, a := range Agents {
		if a.Name == name {
			return a, nil
		}
	}
	e := &Error{Field: "--agent", Problem: fmt.Sprintf("unknown agent %q: the agents are %s", name, strings.Join(AgentNames(), ", "))}
	if near := Nearest(name, AgentNames()); near != "" {
		e.Hint = fmt.Sprintf("did you mean %q?", near)
	}
	return Agent{}, e
}
