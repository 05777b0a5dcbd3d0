package recognise

import (
	"maps"
	"strconv"
	"strings"
)

// flag is one spelling of a flag: the long name it goes by, and whether it takes
// the next word for its value.
type flag struct {
	name  string
	takes bool
}

// flagSet holds every spelling of a command's flags, dashes included.
type flagSet map[string]flag

// given holds the flags of a command line by their long names, the last value of
// each; "--" if that ended them.
type given map[string]string

// on says whether a boolean flag was given and not with =false.
func (g given) on(name string) bool {
	on, _ := strconv.ParseBool(g[name])
	return on
}

// flags makes a flagSet of words such as -e/--env, the long name last.
func flags(booleans, values string) flagSet {
	f := flagSet{}
	for i, words := range []string{booleans, values} {
		for _, word := range strings.Fields(words) {
			spellings := strings.Split(word, "/")
			for _, s := range spellings {
				f[s] = flag{name: spellings[len(spellings)-1], takes: i == 1}
			}
		}
	}
	return f
}

// and returns f with the flags of more, which win over those of f.
func (f flagSet) and(more flagSet) flagSet {
	both := maps.Clone(f)
	maps.Copy(both, more)
	return both
}

// pflag reads flags up to the first word that is none, as the library of that name
// does, which docker, podman, nerdctl and sbx are built on. It is not ok on an unknown flag.
func (f flagSet) pflag(words []string) (given, []string, bool) {
	g, ok := given{}, true
	for ok && len(words) > 0 {
		w := words[0]
		switch {
		case w == "--":
			g["--"] = "true"
			return g, words[1:], true
		case len(w) < 2 || w[0] != '-':
			return g, words, true
		case w[1] == '-':
			words, ok = f.long(g, words)
		default:
			words, ok = f.short(g, words)
		}
	}
	return g, words, ok
}

// long reads --flag, --flag=value or --flag value.
func (f flagSet) long(g given, words []string) ([]string, bool) {
	name, value, has := strings.Cut(words[0], "=")
	words = words[1:]
	fl, known := f[name]
	switch {
	case !known:
		return nil, false
	case !fl.takes:
		return words, g.set(fl, value, has)
	case !has:
		return g.next(fl, words)
	}
	g[fl.name] = value
	return words, true
}

// short reads a cluster of letters. The first that takes a value takes the rest of
// the word or, if it is the last, the next word.
func (f flagSet) short(g given, words []string) ([]string, bool) {
	letters, words := words[0][1:], words[1:]
	for letters != "" {
		fl, known := f["-"+letters[:1]]
		if !known {
			return nil, false
		}
		letters = letters[1:]
		value, has := strings.CutPrefix(letters, "=")
		has = has && value != ""
		switch {
		case !fl.takes && has:
			return words, g.set(fl, value, true)
		case !fl.takes:
			g[fl.name] = "true"
		case letters == "":
			return g.next(fl, words)
		case has:
			g[fl.name] = value
			return words, true
		default:
			g[fl.name] = letters
			return words, true
		}
	}
	return words, true
}

// set notes a boolean, which takes a value only behind "=" and refuses most.
func (g given) set(fl flag, value string, has bool) bool {
	if !has {
		value = "true"
	}
	_, err := strconv.ParseBool(value)
	g[fl.name] = value
	return err == nil
}

// next takes the next word for the value.
func (g given) next(fl flag, words []string) ([]string, bool) {
	if len(words) == 0 {
		return nil, false
	}
	g[fl.name] = words[0]
	return words[1:], true
}

// mixed reads flags that may also stand behind positionals, and returns the
// positionals. What follows "--" is for somebody else.
func (f flagSet) mixed(words []string) (given, []string, bool) {
	var positionals []string
	all := given{}
	for {
		g, rest, ok := f.pflag(words)
		if !ok {
			return nil, nil, false
		}
		maps.Copy(all, g)
		if g.on("--") || len(rest) == 0 {
			return all, positionals, true
		}
		positionals = append(positionals, rest[0])
		words = rest[1:]
	}
}

// apple reads flags as Apple's container does: like pflag, but without values for
// booleans. A cluster is read only if no letter in it takes a value, and "--" not at all.
func (f flagSet) apple(words []string) (given, []string, bool) {
	for i := 0; i < len(words); i++ {
		w := words[i]
		name, _, has := strings.Cut(w, "=")
		fl, known := f[name]
		switch {
		case len(w) < 2 || w[0] != '-':
			return f.pflag(words)
		case known && has && (!fl.takes || w[1] != '-'), !known && (has || w[1] == '-'):
			return nil, nil, false
		case known && fl.takes && !has:
			i++
		case !known && !f.switches(w[1:]):
			return nil, nil, false
		}
	}
	return f.pflag(words)
}

// switches says whether every letter is a boolean flag.
func (f flagSet) switches(letters string) bool {
	for i := range len(letters) {
		if fl, known := f["-"+letters[i:i+1]]; !known || fl.takes {
			return false
		}
	}
	return true
}
