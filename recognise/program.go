package recognise

import (
	"slices"
	"strings"

	"github.com/agent-container/agent-container/spec"
	"mvdan.cc/sh/v3/syntax"
)

// unknown stands in a word for what only the running shell knows. No argument of
// a process can hold it.
const unknown = "\x00"

// maxShells bounds how deep shells are followed into shells.
const maxShells = 4

// shells are the shells whose scripts are read, with the languages to try. sh is
// dash, busybox or bash, which only the image knows.
var shells = map[string][]syntax.LangVariant{
	"sh":   {syntax.LangPOSIX, syntax.LangBash},
	"dash": {syntax.LangPOSIX},
	"ash":  {syntax.LangPOSIX, syntax.LangBash},
	"bash": {syntax.LangBash},
	"ksh":  {syntax.LangMirBSDKorn, syntax.LangBash},
	"mksh": {syntax.LangMirBSDKorn},
	"zsh":  {syntax.LangZsh},
}

// wrappers run the program that their arguments name. The list is closed: package
// runners and sudo are not on it.
var wrappers = map[string]struct {
	flags   flagSet
	skip    int  // words before the program
	assigns bool // NAME=value before the program
}{
	"env": {assigns: true, flags: flags(
		"-i/--ignore-environment -0/--null -v/--debug --block-signal --default-signal --ignore-signal",
		"-u/--unset -C/--chdir")},
	"exec":      {flags: flags("-c -l", "-a")},
	"nohup":     {},
	"nice":      {flags: flags("-0 -1 -2 -3 -4 -5 -6 -7 -8 -9", "-n/--adjustment")},
	"setsid":    {flags: flags("-c/--ctty -f/--fork -w/--wait", "")},
	"time":      {flags: flags("-p/--portability -v/--verbose -a/--append -q/--quiet", "-f/--format -o/--output")},
	"command":   {flags: flags("-p", "")},
	"tini":      {flags: flags("-s -v -w -g", "-p -e")},
	"dumb-init": {flags: flags("-c/--single-child -v/--verbose", "-r/--rewrite")},
	"gosu":      {skip: 1},
	"su-exec":   {skip: 1},
}

var miseExec = flags(
	"-q/--quiet -v/--verbose -y/--yes --fresh-env --no-deps --no-prepare --raw --silent",
	"-C/--cd -E/--env -j/--jobs -P/--profile")

// Program returns the agent of spec.Agents that argv, the program of a container with
// its arguments, runs in the foreground. The rule is Recognise's for the words after
// an image, and what goes for its arguments goes for these.
func Program(argv []string) (agent string, ok bool) {
	agent = reader{}.program(argv)
	return agent, agent != ""
}

// program returns the agent that words run: their first is an agent's executable,
// or a wrapper or a shell that runs one.
func (r reader) program(words []string) string {
	for len(words) > 0 {
		name := base(words[0])
		for _, a := range spec.Agents {
			if a.Executable == name {
				return a.Name
			}
		}
		words = words[1:]
		if name == "busybox" && len(words) > 0 && (words[0] == "sh" || words[0] == "ash") {
			name, words = words[0], words[1:]
		}
		if languages, is := shells[name]; is {
			return r.shell(languages, words)
		}
		words = unwrap(name, words)
	}
	return ""
}

// base returns the part of a program's name behind the last slash, "" if it is not
// known. A word that begins with a dash is an argument.
func base(word string) string {
	name := word[strings.LastIndexByte(word, '/')+1:]
	if strings.HasPrefix(word, "-") || strings.Contains(name, unknown) {
		return ""
	}
	return name
}

// unwrap returns the words that the wrapper called name runs; none if it is no
// wrapper or does something else with them.
func unwrap(name string, words []string) []string {
	if name == "mise" {
		return unwrapMise(words)
	}
	w, is := wrappers[name]
	if !is {
		return nil
	}
	_, words, ok := w.flags.pflag(words)
	if !ok {
		return nil
	}
	for w.assigns && len(words) > 0 && (words[0] == "-" || strings.Contains(words[0], "=")) {
		words = words[1:]
	}
	return words[min(w.skip, len(words)):]
}

// unwrapMise reads exec|x [flags] [TOOL@VERSION…] -- PROGRAM….
func unwrapMise(words []string) []string {
	if len(words) == 0 || words[0] != "exec" && words[0] != "x" {
		return nil
	}
	end := slices.Index(words, "--")
	if end < 0 {
		return nil
	}
	if _, _, ok := miseExec.mixed(words[1:end]); !ok {
		return nil
	}
	return words[end+1:]
}
