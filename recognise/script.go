package recognise

import (
	"io"
	"runtime"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// shellLetters are the options of dash, bash, ksh and zsh that leave a script to be
// run. -n reads it without running it, -s reads standard input.
const shellLetters = "abcdefghiklmoprtuvwxyBCEGHIOPTVX"

var shellWords = flags(
	"--debugger --interactive --login --noediting --noprofile --norc --posix --restricted --verbose",
	"--init-file --rcfile")

// shell returns the agent that a shell with these arguments runs: one in the
// script behind -c. A script in a file is not read.
func (r reader) shell(languages []syntax.LangVariant, words []string) string {
	rest, isScript := shellOptions(words)
	if !isScript || len(rest) == 0 || r.depth == maxShells {
		return ""
	}
	text := rest[0]
	if r.joined {
		text = strings.Join(rest, " ")
	}
	if strings.Contains(text, unknown) {
		return ""
	}
	inner := reader{depth: r.depth + 1}
	for _, language := range languages {
		agent, whole := inner.script(text, language)
		if agent != "" || whole {
			return agent
		}
	}
	return ""
}

// shellOptions returns what follows a shell's options, and whether they say that
// it begins with a script. The words of o and O come behind the whole cluster.
func shellOptions(words []string) (rest []string, isScript bool) {
	for len(words) > 0 {
		w := words[0]
		switch {
		case w == "-" || w == "--":
			return words[1:], isScript
		case len(w) < 2 || w[0] != '-' && w[0] != '+':
			return words, isScript
		case strings.HasPrefix(w, "--"):
			var ok bool
			if words, ok = shellWords.long(given{}, words); !ok {
				return nil, false
			}
			continue
		case strings.Trim(w[1:], shellLetters) != "":
			return nil, false
		}
		isScript = isScript || w[0] == '-' && strings.Contains(w, "c")
		values := strings.Count(w, "o") + strings.Count(w, "O")
		words = words[min(1+values, len(words)):]
	}
	return nil, false
}

// script returns the first agent that text runs, and whether all of it could be
// read. What stands before a mistake counts: a shell has run it by then.
func (r reader) script(text string, language syntax.LangVariant) (agent string, whole bool) {
	defer func() {
		if recover() != nil { // the parser's; no input may end the program
			whole = false
		}
	}()
	c := commands{reader: r, functions: map[string]*syntax.Stmt{}}
	source := &shallow{text: closeComments(text)}
	whole = true
	// Not left early: the parser of v3.14 panics if it is, with a mistake behind.
	for stmt, err := range syntax.NewParser(syntax.Variant(language)).StmtsSeq(source) {
		switch {
		case err != nil || source.cut:
			whole = false
		case agent == "":
			agent = c.agent(stmt)
		}
		if agent != "" {
			source.text = ""
		}
	}
	return agent, whole
}

// closeComments returns text without the backslash that ends a comment: behind a word,
// the parser of v3.14 takes the next line for the same command then, which no shell
// does. Behind an expansion or a here document, whose ends only a parser finds, it stops.
func closeComments(text string) string {
	if !strings.Contains(text, "\\\n") {
		return text
	}
	b := []byte(text)
	quote, inWord := byte(0), false
	for i := 0; i < len(b); i++ {
		c, next := b[i], byte(0)
		if i+1 < len(b) {
			next = b[i+1]
		}
		switch {
		case quote == '\'' && c != quote:
		case c == '`', c == '$' && strings.IndexByte("({'", next) >= 0, quote == 0 && c == '<' && next == '<':
			return string(b)
		case c == '\\':
			inWord = inWord || next != '\n'
			i++
		case c == quote:
			quote = 0
		case quote != 0:
		case c == '\'' || c == '"':
			quote, inWord = c, true
		case c == '#' && !inWord:
			for ; i+1 < len(b) && b[i+1] != '\n'; i++ {
			}
			if b[i] == '\\' {
				b[i] = ' '
			}
		default:
			inWord = strings.IndexByte(" \t\n;&|()<>", c) < 0
		}
	}
	return string(b)
}

// maxFrames bounds the parser's recursion, and with it the memory that a text of
// nothing but opening brackets takes: a stack that overflows cannot be recovered.
const maxFrames = 2000

// shallow hands text to a recursive parser in small pieces, and cuts it off where
// that has recursed too deeply. An error instead of an end makes the parser of
// v3.14 loop for ever.
type shallow struct {
	text string
	cut  bool
}

func (s *shallow) Read(p []byte) (int, error) {
	var frame [1]uintptr
	s.cut = s.cut || runtime.Callers(maxFrames, frame[:]) > 0
	if s.text == "" || s.cut {
		return 0, io.EOF
	}
	n := copy(p, s.text[:min(256, len(s.text))])
	s.text = s.text[n:]
	return n, nil
}

// commands walks the commands of a script in reading order. A function's body is
// read where it is first called, and its name is no program any more.
type commands struct {
	reader
	functions map[string]*syntax.Stmt
	todo      []*syntax.Stmt // the next last
}

// agent returns the first agent that s runs.
func (c *commands) agent(s *syntax.Stmt) string {
	c.todo = append(c.todo[:0], s)
	for len(c.todo) > 0 {
		s := c.todo[len(c.todo)-1]
		c.todo = c.todo[:len(c.todo)-1]
		if s == nil {
			continue
		}
		call, is := s.Cmd.(*syntax.CallExpr)
		if !is {
			c.open(s.Cmd)
			continue
		}
		words := literals(call.Args)
		if len(words) == 0 {
			continue
		}
		if body, declared := c.functions[words[0]]; declared {
			c.functions[words[0]] = nil
			c.todo = append(c.todo, body)
		} else if agent := c.program(words); agent != "" {
			return agent
		}
	}
	return ""
}

// open queues the commands within a compound one.
func (c *commands) open(cmd syntax.Command) {
	switch cmd := cmd.(type) {
	case *syntax.Subshell:
		c.queue(cmd.Stmts)
	case *syntax.Block:
		c.queue(cmd.Stmts)
	case *syntax.BinaryCmd:
		c.queue([]*syntax.Stmt{cmd.X, cmd.Y})
	case *syntax.TimeClause:
		c.queue([]*syntax.Stmt{cmd.Stmt})
	case *syntax.WhileClause:
		c.queue(cmd.Cond, cmd.Do)
	case *syntax.ForClause:
		c.queue(cmd.Do)
	case *syntax.IfClause:
		var branches [][]*syntax.Stmt
		for ; cmd != nil; cmd = cmd.Else {
			branches = append(branches, cmd.Cond, cmd.Then)
		}
		c.queue(branches...)
	case *syntax.CaseClause:
		items := make([][]*syntax.Stmt, len(cmd.Items))
		for i, item := range cmd.Items {
			items[i] = item.Stmts
		}
		c.queue(items...)
	case *syntax.FuncDecl:
		if cmd.Name != nil {
			c.functions[cmd.Name.Value] = cmd.Body
		}
	}
}

// queue puts lists of commands before what is queued, the first of them next.
func (c *commands) queue(lists ...[]*syntax.Stmt) {
	for i := len(lists) - 1; i >= 0; i-- {
		for j := len(lists[i]) - 1; j >= 0; j-- {
			c.todo = append(c.todo, lists[i][j])
		}
	}
}

// literals returns words with their quotes removed and each expansion as unknown.
func literals(args []*syntax.Word) []string {
	words := make([]string, len(args))
	for i, arg := range args {
		var b strings.Builder
		for _, part := range arg.Parts {
			literal(&b, part)
		}
		words[i] = b.String()
	}
	return words
}

func literal(b *strings.Builder, part syntax.WordPart) {
	switch part := part.(type) {
	case *syntax.Lit:
		unescape(b, part.Value, "")
	case *syntax.SglQuoted:
		if part.Dollar && strings.Contains(part.Value, `\`) {
			b.WriteString(unknown)
			return
		}
		b.WriteString(part.Value)
	case *syntax.DblQuoted:
		for _, inner := range part.Parts {
			if lit, is := inner.(*syntax.Lit); is {
				unescape(b, lit.Value, "\\$\"`\n")
			} else {
				b.WriteString(unknown)
			}
		}
	default:
		b.WriteString(unknown)
	}
}

// unescape removes the backslashes that quote: before any character, or before
// those of only. A newline goes with its backslash.
func unescape(b *strings.Builder, text, only string) {
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) && (only == "" || strings.IndexByte(only, text[i+1]) >= 0) {
			i++
			if text[i] == '\n' {
				continue
			}
		}
		b.WriteByte(text[i])
	}
}
