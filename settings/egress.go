package settings

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/agent-container/agent-container/spec"
)

// The group of keys about egress, and two of them.
const (
	egressGroup    = "egress"
	allowKey       = "egress.allow"
	enforcementKey = "egress.enforcement"
)

// Egress is what the settings declare, nil where they declare nothing. An
// enforcement alone permits nothing.
func (s *Settings) Egress() *spec.Egress {
	allow, enforcement := s.Get(allowKey).Text, s.Get(enforcementKey).Text
	if allow == "" && enforcement == "" {
		return nil
	}
	e := &spec.Egress{Enforcement: spec.Strict, Allow: entriesOf(allow), Outside: s.Outside()}
	if enforcement != "" {
		e.Enforcement = spec.Enforcement(enforcement)
	}
	return e
}

// maxEntries bounds a list; a real one has a few entries.
const maxEntries = 500

// coveredBy reports whether a user's list, if there is one, permits all that a
// project's does.
func coveredBy(project, user string) bool {
	return user == "" || !slices.ContainsFunc(entriesOf(project), func(entry string) bool { return !spec.Covered(entry, entriesOf(user)) })
}

// Outside are the services that stay outside of what is declared, wherever that
// is; nil where settings name none.
func (s *Settings) Outside() []string {
	if text := s.Get("egress.outside").Text; text != "" {
		return entriesOf(text)
	}
	return nil
}

// listText is the text of a list, which is not empty where the list is.
func listText(words []string) string {
	if len(words) == 0 {
		return spec.NothingAllowed
	}
	return strings.Join(words, " ")
}

// entriesOf reads what listText wrote.
func entriesOf(text string) []string {
	if text == spec.NothingAllowed {
		return []string{}
	}
	return strings.Fields(text)
}

// allowed checks the entries of a declaration.
func allowed(entries []string) ([]string, error) {
	e, err := spec.NewEgress(allowKey, spec.Strict, entries)
	if err != nil {
		return nil, err
	}
	return e.Allow, nil
}

// servicesOutside checks names of services.
func servicesOutside(names []string) ([]string, error) {
	names = slices.Clone(names)
	slices.Sort(names)
	for i, name := range names {
		// A dot keeps a service from being declared, not from being outside.
		if a, err := spec.ParseAllow("", "service:"+strings.ReplaceAll(name, ".", "_")+":1"); err != nil || a.Service == "" {
			return nil, fmt.Errorf("%q is not the name of a service", spec.Printable(name, 80))
		}
		if i > 0 && names[i-1] == name {
			return nil, fmt.Errorf("%s is there twice", name)
		}
	}
	return names, nil
}

// loadList takes a key that is a list. A project's entries of what may leave
// have to be within the user's, where there are any: one that is not is refused,
// for a job that needs it would fail half way.
func (s *Settings) loadList(path string, project bool, k Key, key, value *yaml.Node) error {
	if project && k.project == never {
		return &Error{Where: at(path, key), Problem: fmt.Sprintf("a project may not set %s", k.Name), Hint: "set it in the user's " + FileName}
	}
	if value.Kind != yaml.SequenceNode {
		return &Error{Where: at(path, value), Problem: k.Name + ": takes a list", Hint: "write [] for an empty one"}
	}
	if len(value.Content) > maxEntries {
		return &Error{Where: at(path, value), Problem: fmt.Sprintf("%s: holds more than %d entries", k.Name, maxEntries)}
	}
	user := ""
	if s.user != nil {
		user = listText(s.user.Allow)
	}
	var list []string
	for _, node := range value.Content {
		entry, err := k.entry(node)
		if err != nil {
			return refused(at(path, node), k.Name+": ", err)
		}
		if slices.Contains(list, entry) {
			return &Error{Where: at(path, node), Problem: fmt.Sprintf("%s: %s is there twice", k.Name, entry)}
		}
		if project && !k.narrower(entry, user) {
			return &Error{Where: at(path, node), Problem: fmt.Sprintf("%s: %s is not within what the user's %s permits", k.Name, entry, FileName), Hint: "permit it there, or take it out here"}
		}
		list = append(list, entry)
	}
	slices.Sort(list)
	origin := "user "
	if project {
		origin = "project "
	}
	s.values[k.Name] = Value{listText(list), origin + at(path, key)}
	return nil
}

// entry is the one form of an entry.
func (k Key) entry(node *yaml.Node) (string, error) {
	text, err := entryText(k, node)
	if err != nil {
		return "", err
	}
	list, err := k.list([]string{text})
	if err != nil {
		return "", err
	}
	return list[0], nil
}

// entryText is the text of one entry: itself, or what a mapping writes out.
func entryText(k Key, node *yaml.Node) (string, error) {
	switch {
	case node.Kind == yaml.ScalarNode && node.Tag != "!!null" && !strings.ContainsAny(node.Value, " \t\r\n"):
		return node.Value, nil
	case node.Kind == yaml.MappingNode && k.Name == allowKey:
		return mappedEntry(node)
	}
	return "", fmt.Errorf("an entry is one word: %s", k.Values)
}

// mappedEntry writes an entry as one word that stands as a mapping.
func mappedEntry(node *yaml.Node) (string, error) {
	given := map[string]string{}
	keys := []string{"host", "provider", "service", "port", "private"}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if !slices.Contains(keys, key.Value) {
			err := &spec.Error{Problem: fmt.Sprintf("unknown key %q of an entry", spec.Printable(key.Value, 80)), Hint: "the keys are " + strings.Join(keys, ", ")}
			if near := spec.Nearest(key.Value, keys); near != "" {
				err.Hint = fmt.Sprintf("did you mean %q?", near)
			}
			return "", err
		}
		tag := map[string]string{"port": "!!int", "private": "!!bool"}[key.Value]
		if tag == "" {
			tag = "!!str"
		}
		if _, twice := given[key.Value]; twice {
			return "", fmt.Errorf("%s is there twice", key.Value)
		}
		if value.Kind != yaml.ScalarNode || value.Tag != tag || value.Value == "" || strings.ContainsAny(value.Value, " \t\r\n") {
			return "", fmt.Errorf("%s takes a %s", key.Value, map[string]string{"!!int": "number", "!!bool": "true or false", "!!str": "word"}[tag])
		}
		given[key.Value] = value.Value
	}
	return joinEntry(given)
}

// joinEntry puts the parts of an entry together.
func joinEntry(given map[string]string) (string, error) {
	private := false
	if text, ok := given["private"]; ok {
		var err error
		if private, err = strconv.ParseBool(text); err != nil {
			return "", errors.New("private takes true or false")
		}
	}
	text, kinds := "", 0
	for _, kind := range []string{"host", "provider", "service"} {
		if value, ok := given[kind]; ok {
			kinds++
			text = value
			if kind != "host" {
				text = kind + ":" + value
			}
		}
	}
	_, port := given["port"]
	switch {
	case kinds != 1:
		return "", errors.New("an entry has one of host, provider and service")
	case given["provider"] != "" && (port || private):
		return "", errors.New("a provider has ports of its own, and no private hosts")
	case strings.Contains(given["host"], ":") || strings.Contains(given["service"], ":"):
		return "", errors.New("a host of an entry that is a mapping has no colon: port and private are keys of it")
	case private:
		text = "private:" + text
	}
	if port {
		text += ":" + given["port"]
	}
	return text, nil
}

// refused is the *Error for a value, with the hint that a refusal of spec has.
func refused(where, prefix string, err error) error {
	var e *spec.Error
	if errors.As(err, &e) {
		problem := e.Problem
		if prefix == "" && e.Field != allowKey {
			problem = e.Error()
		}
		return &Error{Where: where, Problem: prefix + problem, Hint: e.Hint}
	}
	return &Error{Where: where, Problem: prefix + err.Error()}
}
