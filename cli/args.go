package cli

import (
	"fmt"
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"
)

// urfave stops reading flags at the first argument, silently: in "logs NAME
// --follow" the flag would be an argument. So argv is put in its order first,
// by the command's own flags. "--" ends the flags; after the first argument of
// a command that runs another one, nothing is ours.

// splitGlobals takes the global switches out of argv, wherever they stand
// before "--" or a child's command, and returns the ones that were there.
func splitGlobals(list []command, argv []string) ([]string, map[string]bool) {
	found := map[string]bool{}
	rest := slices.Clone(argv[:min(1, len(argv))])
	walk(list, argv, func(word string, kind wordKind) {
		if kind == wordFlag && isGlobal(word) {
			found[word] = true
			return
		}
		rest = append(rest, word)
	})
	return rest, found
}

// reorder moves the flags of the command before its arguments and separates
// them by "--".
func reorder(list []command, argv []string) []string {
	head := slices.Clone(argv[:min(1, len(argv))])
	var flags, args []string
	missing := walk(list, argv, func(word string, kind wordKind) {
		switch kind {
		case wordCommand:
			head = append(head, word)
		case wordFlag, wordValue, wordSwallowed:
			flags = append(flags, word)
		case wordArgument:
			args = append(args, word)
		}
	})
	out := append(head, flags...)
	if slices.Contains(flags, "--help") || slices.Contains(flags, "-h") {
		return out // an argument would be taken for a topic of the help
	}
	if missing {
		return out // the flag comes last, so that urfave sees that its value is missing
	}
	if len(args) > 0 {
		out = append(append(out, "--"), args...)
	}
	return out
}

type wordKind int

const (
	wordCommand wordKind = iota
	wordFlag
	wordValue // of the flag before
	wordArgument
	wordSwallowed // a flag of ours where the value of the flag before should be
	wordEnd       // the "--" itself
)

// walk tells visit what each word of argv after the first is. It reports
// whether argv ends with a flag whose value is missing.
func walk(list []command, argv []string, visit func(string, wordKind)) (missing bool) {
	current := command{sub: list, flags: globalFlags()}
	ended, value, seen := false, false, 0
	for _, word := range argv[min(1, len(argv)):] {
		switch {
		case ended || current.child && seen > 0:
			if current.child && seen == 1 && word == "--" && !ended {
				seen++ // "exec NAME -- CMD": the dashes are punctuation
				visit(word, wordEnd)
				continue
			}
			seen++
			visit(word, wordArgument)
		case value:
			value = false
			if isFlagOf(current.flags, word) {
				visit(word, wordSwallowed)
				continue
			}
			visit(word, wordValue)
		case word == "--":
			ended = true
			visit(word, wordEnd)
		case strings.HasPrefix(word, "-") && word != "-":
			value = takesValue(current.flags, word)
			visit(ownName(current.flags, word), wordFlag)
		default:
			if next, ok := findCommand(current.sub, word); ok && seen == 0 {
				current = next
				visit(word, wordCommand)
				continue
			}
			seen++
			visit(word, wordArgument)
		}
	}
	return value
}

// checkValues refuses a flag of ours in the place of a flag's value: in "up web
// --task --foreground" the task was forgotten, and a job with the task
// "--foreground" would be billed.
func checkValues(list []command, argv []string) error {
	var err error
	before := ""
	walk(list, argv, func(word string, kind wordKind) {
		if kind == wordSwallowed && err == nil {
			err = refuse(fmt.Sprintf("if %q is meant as the value, write %s=%s", word, before, word), "%s needs a value, and %s follows", before, word)
		}
		before = word
	})
	return err
}

// isFlagOf reports whether word is exactly one of flags or of the global ones.
func isFlagOf(flags []ucli.Flag, word string) bool {
	for _, f := range append(slices.Clone(flags), globalFlags()...) {
		for _, n := range f.Names() {
			if word == "--"+n || len(n) == 1 && word == "-"+n {
				return true
			}
		}
	}
	return false
}

// takesValue reports whether the word after this flag is its value.
func takesValue(flags []ucli.Flag, word string) bool {
	name, _, joined := strings.Cut(strings.TrimLeft(word, "-"), "=")
	for _, f := range flags {
		if slices.Contains(f.Names(), name) {
			d, ok := f.(ucli.DocGenerationFlag)
			return ok && d.TakesValue() && !joined
		}
	}
	return false
}

// ownName replaces an alias by the flag's own name: urfave refuses two forms of
// one flag, as in "--env A=1 -e B=2".
func ownName(flags []ucli.Flag, word string) string {
	name, value, joined := strings.Cut(strings.TrimLeft(word, "-"), "=")
	for _, f := range flags {
		if slices.Contains(f.Names()[1:], name) {
			word = "--" + f.Names()[0]
			if joined {
				word += "=" + value
			}
		}
	}
	return word
}

func isGlobal(word string) bool { return isFlagOf(nil, word) }
