package spec

import (
	"net/url"
	"regexp"
	"strings"
	"unicode"
)

// Repo is a repository that is cloned into /workspace at the first start.
type Repo struct {
	URL  string // without userinfo but an ssh user's name, without a query
	Host string // in lower case, with the port where the URL has one
	SSH  bool   // it is fetched with the container's own key
	Ref  string // a branch, a tag or a whole commit id; empty for what the server names
}

// String returns the text that ParseRepo reads.
func (r Repo) String() string {
	if r.Ref == "" {
		return r.URL
	}
	return r.URL + "#" + r.Ref
}

// TokenHost is the host that may get a token for r, and "" where none may: over
// plain http everybody on the way would read it.
func (r Repo) TokenHost() string {
	if strings.HasPrefix(r.URL, "https://") {
		return r.Host
	}
	return ""
}

// CommitID reports whether r.Ref is a whole commit id (SHA-1 or SHA-256).
func (r Repo) CommitID() bool { return commitPattern.MatchString(r.Ref) }

// Same reports whether url, from a work tree's configuration, is r's: the host's
// case, credentials in it, and a trailing "/" or ".git" make no difference.
func (r Repo) Same(url string) bool { return plainRepo(url) == plainRepo(r.URL) }

func plainRepo(url string) string {
	url = strings.TrimSuffix(strings.TrimRight(strings.TrimSpace(url), "/"), ".git")
	if scheme, rest, ok := strings.Cut(url, "://"); ok {
		user := ""
		if scheme == "ssh" {
			user, _, _ = strings.Cut(rest[:max(strings.Index(rest, "@"), 0)], ":")
		}
		host, path, _ := strings.Cut(WithoutUserinfo(url)[len(scheme)+3:], "/")
		return scheme + "://" + user + "@" + strings.ToLower(host) + "/" + path
	}
	return url
}

// WithoutUserinfo drops what stands before the host of a URL: somebody may have
// put a token there.
func WithoutUserinfo(url string) string {
	scheme, rest, ok := strings.Cut(url, "://")
	if !ok {
		return url
	}
	host, path, hasPath := strings.Cut(rest, "/")
	url = scheme + "://" + host[strings.LastIndex(host, "@")+1:]
	if hasPath {
		url += "/" + path
	}
	return url
}

var (
	commitPattern = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)
	hostPattern   = regexp.MustCompile(`^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?)(:[0-9]{1,5})?$`)
	scpPattern    = regexp.MustCompile(`^([A-Za-z0-9_][A-Za-z0-9_.-]*)@([^:/@]+):([^/:@-][^:]*|/[^:]*)$`)
	userPattern   = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)
)

// maxRepo bounds the text of --repo.
const maxRepo = 2048

const repoForms = "write https://HOST/PATH or git@HOST:PATH, with #BRANCH, #TAG or #COMMIT behind it"

// ParseRepo reads URL[#REF]: https, http, ssh://USER@HOST/PATH or
// USER@HOST:PATH. Credentials in the URL are left out, and dropped is true then.
// An error is an *Error and never shows the text, which may hold a token.
func ParseRepo(text string) (r Repo, dropped bool, err error) {
	refuse := func(problem, hint string) (Repo, bool, error) {
		return Repo{}, dropped, &Error{Field: "--repo", Problem: problem, Hint: hint}
	}
	if strings.ContainsFunc(text, func(c rune) bool { return unicode.IsSpace(c) || !unicode.IsPrint(c) }) {
		return refuse("the URL holds a space or a control character", repoForms)
	}
	if len(text) > maxRepo {
		return refuse("the URL is too long", repoForms)
	}
	address, ref, hasRef := strings.Cut(text, "#")
	if hasRef && !validRef(ref) {
		return refuse("what stands behind the # is no name of a branch, a tag or a commit", repoForms)
	}
	if m := scpPattern.FindStringSubmatch(address); m != nil && hostPattern.MatchString(m[2]) {
		return Repo{URL: address, Host: strings.ToLower(m[2]), SSH: true, Ref: ref}, false, nil
	}
	u, parseErr := url.Parse(address)
	if parseErr != nil || u.Opaque != "" {
		return refuse("not the URL of a repository", repoForms)
	}
	switch u.Scheme {
	case "https", "http":
		dropped = u.User != nil
		u.User = nil
	case "ssh":
		if _, dropped = u.User.Password(); u.User != nil {
			u.User = url.User(u.User.Username())
		}
		if u.User != nil && !userPattern.MatchString(u.User.Username()) {
			return refuse("the URL's user name is not one", repoForms)
		}
	case "":
		return refuse("not the URL of a repository", repoForms+"; a directory of this machine is --workspace bind --workspace-dir DIR")
	default:
		return refuse("a repository is cloned over https, http or ssh", repoForms)
	}
	switch {
	case !hostPattern.MatchString(u.Host):
		return refuse("the URL has no usable host", repoForms)
	case strings.Trim(u.Path, "/") == "":
		return refuse("the URL names a host and no repository", repoForms)
	case u.RawQuery != "" || u.ForceQuery:
		return refuse("the URL has a query", "leave out the ? and what follows; a token goes into --env GH_TOKEN")
	}
	return Repo{URL: u.String(), Host: strings.ToLower(u.Host), SSH: u.Scheme == "ssh", Ref: ref}, dropped, nil
}

// ValidHost reports whether host can stand in a URL, with a port or without.
func ValidHost(host string) bool { return hostPattern.MatchString(host) }

// validRef holds what git check-ref-format does, for a name below refs/heads.
func validRef(ref string) bool {
	if ref == "" || strings.ContainsAny(ref, "~^:?*[\\#") || strings.Contains(ref, "..") || strings.Contains(ref, "@{") ||
		ref == "@" || strings.HasPrefix(ref, "-") || strings.HasSuffix(ref, ".") {
		return false
	}
	for _, part := range strings.Split(ref, "/") {
		if part == "" || strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	return true
}
