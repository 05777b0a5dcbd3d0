package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"gopkg.in/yaml.v3"

	"github.com/agent-container/agent-container/spec"
)

// FileName is the name of a settings file, the user's and a project's.
const FileName = "settings.yaml"

// ProjectDir is the folder that makes a directory a project.
const ProjectDir = ".agent-container"

// maxFile bounds a settings file; a real one has a few lines.
const maxFile = 1 << 20

// Value is a setting with its origin: "default", "detected",
// "environment NAME" or "user FILE:LINE", "project FILE:LINE".
type Value struct {
	Text   string
	Origin string
}

// Settings holds a Value for every key of the table.
type Settings struct {
	values  map[string]Value
	Project string // the project's directory, or empty

	user *spec.Egress // what the user's file declares
}

// Error is a refusal of a settings file or of a variable.
type Error struct {
	Where   string // FILE:LINE, FILE, or a variable's name
	Problem string
	Hint    string
}

func (e *Error) Error() string { return e.Where + ": " + e.Problem }

// Load reads the user's file in configDir, the project's above cwd, or of none where
// cwd is "", and the variables that env knows. A missing file is no error; any other trouble is an
// *Error and never means "empty".
func Load(configDir, cwd string, env func(string) string) (*Settings, error) {
	s := &Settings{values: map[string]Value{}}
	for _, k := range Keys {
		s.values[k.Name] = Value{k.Default, "default"}
	}
	if err := s.loadFile(filepath.Join(configDir, FileName), false); err != nil {
		return nil, err
	}
	s.user = s.Egress()
	if cwd != "" {
		s.Project = FindProject(cwd)
	}
	if s.Project != "" {
		if err := s.loadFile(filepath.Join(s.Project, ProjectDir, FileName), true); err != nil {
			return nil, err
		}
	}
	return s, s.loadEnvironment(env)
}

// Get returns the value of a key of the table.
func (s *Settings) Get(name string) Value { return s.values[name] }

// Set overrides a key, for a flag or what was detected.
func (s *Settings) Set(name, text, origin string) { s.values[name] = Value{text, origin} }

// FindProject returns the nearest directory at or above dir that holds a
// project folder, or "".
func FindProject(dir string) string {
	for {
		if info, err := os.Stat(filepath.Join(dir, ProjectDir)); err == nil && info.IsDir() {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return ""
		}
		dir = parent
	}
}

func (s *Settings) loadFile(path string, project bool) error {
	content, err := ReadRegular(path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var failed *fs.PathError
	if errors.As(err, &failed) {
		err = failed.Err // Where has the path
	}
	if err != nil {
		return &Error{Where: path, Problem: err.Error()}
	}
	if len(content) == 0 {
		// What a crash or a full disk leaves of a file; nobody writes it.
		return &Error{Where: path, Problem: "is empty", Hint: "write it again, or remove it"}
	}
	var doc, second yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(content))
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil // comments only
	} else if err != nil {
		return notYAML(path, err)
	}
	// A second document would be ignored.
	if err := dec.Decode(&second); err == nil {
		return &Error{Where: at(path, &second), Problem: "holds more than one document"}
	} else if !errors.Is(err, io.EOF) {
		return notYAML(path, err)
	}
	if doc.Content[0].Tag == "!!null" {
		return nil
	}
	return s.loadMapping(path, project, map[string]bool{}, "", doc.Content[0])
}

// loadMapping takes the keys of one mapping; prefix is empty or ends in a dot.
// seen holds the full names met in the file: "limits.pids" may be spelled so
// or nested, but only once.
func (s *Settings) loadMapping(path string, project bool, seen map[string]bool, prefix string, node *yaml.Node) error {
	if node.Kind != yaml.MappingNode {
		problem := strings.TrimSuffix(prefix, ".") + " is not a mapping of keys to values"
		return &Error{Where: at(path, node), Problem: strings.TrimSpace(problem)}
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		name := prefix + key.Value
		if seen[name] {
			return &Error{Where: at(path, key), Problem: fmt.Sprintf("key %q is there twice", name)}
		}
		seen[name] = true
		if name == egressGroup && value.Kind == yaml.MappingNode && len(value.Content) == 0 {
			return &Error{Where: at(path, key), Problem: "egress says neither what may leave nor that nothing may", Hint: "write allow: [] to let nothing out, or leave egress out"}
		}
		if isGroup(name) {
			if err := s.loadMapping(path, project, seen, name+".", value); err != nil {
				return err
			}
			continue
		}
		if err := s.loadKey(path, project, name, key, value); err != nil {
			return err
		}
	}
	return nil
}

func (s *Settings) loadKey(path string, project bool, name string, key, value *yaml.Node) error {
	k, ok := lookup(name)
	if !ok {
		e := &Error{Where: at(path, key), Problem: fmt.Sprintf("unknown key %q", name)}
		if near := spec.Nearest(name, Names()); near != "" {
			e.Hint = fmt.Sprintf("did you mean %q?", near)
		} else {
			e.Hint = "the keys are " + strings.Join(Names(), ", ")
		}
		return e
	}
	if k.list != nil {
		return s.loadList(path, project, k, key, value)
	}
	text, err := scalar(k, value)
	if err != nil {
		return &Error{Where: at(path, value), Problem: name + ": " + err.Error()}
	}
	if !project {
		s.values[name] = Value{text, "user " + at(path, key)}
		return nil
	}
	if k.project == never || name == "workspace" && text == string(spec.Bind) {
		return &Error{Where: at(path, key), Problem: fmt.Sprintf("a project may not set %s: %q", name, text), Hint: "set it in the user's " + FileName}
	}
	user := s.values[name].Text
	if name == enforcementKey && s.user != nil {
		user = string(s.user.Enforcement) // also where a list alone says it
	}
	if k.project == choice || k.narrower(text, user) {
		s.values[name] = Value{text, "project " + at(path, key)}
	}
	return nil
}

// loadEnvironment takes the AGENT_CONTAINER_* variables of the table. An empty
// variable counts as unset.
func (s *Settings) loadEnvironment(env func(string) string) error {
	for _, k := range Keys {
		text := env(k.Env())
		if text == "" {
			continue
		}
		if err := k.checkValue(text); err != nil {
			return refused(k.Env(), "", err)
		}
		if k.list != nil {
			list, _ := k.list(entriesOf(text)) // it was checked
			text = listText(list)
		}
		if k.pairs {
			text = k.overDefault(text)
		}
		s.values[k.Name] = Value{text, "environment " + k.Env()}
	}
	return nil
}

// isGroup reports whether name is the first part of nested keys.
func isGroup(name string) bool {
	for _, k := range Keys {
		if strings.HasPrefix(k.Name, name+".") {
			return true
		}
	}
	return false
}

// ReadRegular reads a file of at most limit bytes that is, behind links, a
// regular file: a FIFO would wait for a writer, and a device may never end. The
// error is a *fs.PathError. fs.ErrNotExist means that nothing has that name; a
// link to nothing is another error, for who made the link meant a file.
func ReadRegular(path string, limit int64) ([]byte, error) {
	// Opened first and looked at then, so that both are the same file.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		if _, linkErr := os.Lstat(path); linkErr == nil {
			return nil, notReadable(path, "a link to nothing")
		}
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, notReadable(path, "not a regular file")
	}
	content, err := io.ReadAll(io.LimitReader(f, limit+1))
	if int64(len(content)) > limit {
		return nil, notReadable(path, fmt.Sprintf("larger than %d bytes", limit))
	}
	return content, err
}

func notReadable(path, why string) error {
	return &fs.PathError{Op: "read", Path: path, Err: errors.New(why)}
}

func at(path string, node *yaml.Node) string { return fmt.Sprintf("%s:%d", path, node.Line) }

func notYAML(path string, err error) error {
	return &Error{Where: withLine(path, err), Problem: "not YAML: " + strings.TrimPrefix(err.Error(), "yaml: ")}
}

// withLine adds the line that a YAML syntax error names.
func withLine(path string, err error) string {
	var line int
	if _, scanErr := fmt.Sscanf(err.Error(), "yaml: line %d:", &line); scanErr != nil {
		return path + ":1"
	}
	return fmt.Sprintf("%s:%d", path, line)
}
