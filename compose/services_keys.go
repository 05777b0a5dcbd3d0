package compose

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/agent-container/agent-container/spec"
)

// checkServiceKeys holds the file's keys against the allow-lists, on the text
// itself, so that an error has a line.
func checkServiceKeys(file string, content []byte, r rules) error {
	var doc, second yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(content))
	if err := dec.Decode(&doc); err != nil && !errors.Is(err, io.EOF) {
		return &ServicesError{File: file, Problem: "not YAML: " + strings.TrimPrefix(firstLine(err.Error()), "yaml: ")}
	}
	// Compose merges every document of a file; one behind the first would pass
	// these checks unseen.
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		return &ServicesError{File: file, Line: second.Line, Problem: "holds more than one document"}
	}
	if len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		return &ServicesError{File: file, Problem: "holds no mapping with services"}
	}
	root := doc.Content[0]
	if err := onlyWritable(file, root); err != nil {
		return err
	}
	if err := onlyKeys(file, "", root, topKeys); err != nil {
		return err
	}
	services := child(root, "services")
	if services == nil || services.Kind != yaml.MappingNode || len(services.Content) == 0 {
		return &ServicesError{File: file, Line: root.Line, Problem: "declares no services"}
	}
	for i := 0; i+1 < len(services.Content); i += 2 {
		key, value := services.Content[i], services.Content[i+1]
		if slices.Contains(reservedServices, key.Value) {
			return &ServicesError{File: file, Line: key.Line, Problem: fmt.Sprintf("service %q is our own", key.Value), Hint: "give it another name"}
		}
		if err := onlyKeys(file, "services."+key.Value, value, r.service); err != nil {
			return err
		}
	}
	return checkVolumeKeys(file, child(root, "volumes"), r)
}

func checkVolumeKeys(file string, volumes *yaml.Node, r rules) error {
	if volumes == nil || volumes.Kind != yaml.MappingNode {
		return nil // nothing, or loading says what is wrong
	}
	for i := 0; i+1 < len(volumes.Content); i += 2 {
		if value := volumes.Content[i+1]; value.Kind == yaml.MappingNode {
			if err := onlyKeys(file, "volumes."+volumes.Content[i].Value, value, r.volume); err != nil {
				return err
			}
		}
	}
	return nil
}

// unwritable reports whether compose-go's YAML writes text and then reads it
// back changed: several lines of which the first begins with a tab or a Unicode
// line end, or follows an empty one and begins with a space
// (go.yaml.in/yaml/v4 4.0.0-rc.4).
func unwritable(text string) bool {
	first := strings.TrimLeft(text, "\n")
	return strings.Contains(text, "\n") && strings.HasPrefix(first, "\t") || strings.HasPrefix(text, "\n") && strings.HasPrefix(first, " ") ||
		strings.HasPrefix(first, "\u2028") || strings.HasPrefix(first, "\u2029")
}

const unwritableProblem = "a text of several lines may not begin with a tab, a Unicode line end, or an empty line and a space"

// onlyWritable refuses unwritable texts of the file itself, with their line.
func onlyWritable(file string, node *yaml.Node) error {
	if unwritable(node.Value) {
		return &ServicesError{File: file, Line: node.Line, Problem: unwritableProblem}
	}
	for _, n := range node.Content {
		if err := onlyWritable(file, n); err != nil {
			return err
		}
	}
	return nil
}

// allWritable is onlyWritable for what variables and Compose have made of the
// file.
func (s *Services) allWritable(file string) error {
	content, err := s.project.MarshalJSON()
	if err != nil {
		return &ServicesError{File: file, Problem: firstLine(err.Error())}
	}
	for dec := json.NewDecoder(bytes.NewReader(content)); ; {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return &ServicesError{File: file, Problem: firstLine(err.Error())}
		}
		if text, ok := token.(string); ok && unwritable(text) {
			return &ServicesError{File: file, Problem: unwritableProblem}
		}
	}
}

// onlyKeys refuses a mapping with a key that is not allowed. Aliases and merge
// keys are refused too: they would bring keys past this check.
func onlyKeys(file, where string, node *yaml.Node, allowed []string) error {
	if node.Kind != yaml.MappingNode {
		return &ServicesError{File: file, Line: node.Line, Problem: strings.TrimSpace(where + " is not a mapping")}
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i]
		if slices.Contains(allowed, key.Value) && key.Kind == yaml.ScalarNode {
			continue
		}
		name := strings.TrimPrefix(where+"."+key.Value, ".")
		e := &ServicesError{File: file, Line: key.Line, Problem: fmt.Sprintf("key %q is not allowed", name)}
		if near := spec.Nearest(key.Value, allowed); near != "" {
			e.Hint = fmt.Sprintf("did you mean %q?", near)
		} else {
			e.Hint = "allowed are " + strings.Join(allowed, ", ")
		}
		return e
	}
	return nil
}

// child returns the value of key in a mapping, or nil.
func child(node *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == key {
			return node.Content[i+1]
		}
	}
	return nil
}
