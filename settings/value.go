package settings

import (
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// scalar returns a value's text after its type and content were checked.
func scalar(k Key, node *yaml.Node) (string, error) {
	if k.pairs {
		return pairs(k, node)
	}
	if k.argv {
		return argvOf(k, node)
	}
	if node.Kind != yaml.ScalarNode || node.Tag == "!!null" {
		return "", fmt.Errorf("takes one value: %s", k.Values)
	}
	if k.boolean {
		var b bool
		if node.Tag != "!!bool" || node.Decode(&b) != nil {
			return "", fmt.Errorf("%q is not true or false", node.Value)
		}
		return fmt.Sprint(b), nil
	}
	// YAML 1.1 would read a bare "no" as a boolean; yaml.v3 keeps the text.
	return node.Value, k.checkValue(node.Value)
}

// argvOf returns a command's text, its words with a blank between them. A word with a
// blank in it belongs into a script.
func argvOf(k Key, node *yaml.Node) (string, error) {
	if node.Kind != yaml.SequenceNode || len(node.Content) == 0 || len(node.Content) > maxEntries {
		return "", fmt.Errorf("takes a %s", k.Values)
	}
	var words []string
	for _, w := range node.Content {
		if w.Kind != yaml.ScalarNode || w.Tag == "!!null" || w.Value == "" || strings.ContainsAny(w.Value, " \t\r\n") {
			return "", fmt.Errorf("line %d: a word of a command has no blank in it; put such a command into a script", w.Line)
		}
		words = append(words, w.Value)
	}
	return strings.Join(words, " "), nil
}

// pairs returns a mapping's text after it was checked.
func pairs(k Key, node *yaml.Node) (string, error) {
	if node.Kind != yaml.MappingNode {
		return "", fmt.Errorf("takes a mapping, %s", k.Values)
	}
	var words []string
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, value := node.Content[i], node.Content[i+1]
		if value.Kind != yaml.ScalarNode || strings.ContainsAny(name.Value+value.Value, " \t\n=") {
			return "", fmt.Errorf("line %d: takes %s", value.Line, k.Values)
		}
		words = append(words, strings.ToLower(name.Value)+"="+value.Value)
	}
	text := strings.Join(words, " ")
	if err := k.checkValue(text); err != nil {
		return "", err
	}
	return k.overDefault(text), nil
}

// overDefault puts the pairs of text over those of the default.
func (k Key) overDefault(text string) string {
	words := strings.Fields(text)
	for _, d := range strings.Fields(k.Default) {
		name, _, _ := strings.Cut(d, "=")
		if !slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(strings.ToLower(w), name+"=") }) {
			words = append(words, d)
		}
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

func (k Key) checkValue(text string) error {
	if k.list != nil {
		_, err := k.list(entriesOf(text))
		return err
	}
	if k.boolean && text != "true" && text != "false" {
		return fmt.Errorf("%q is not true or false", text)
	}
	if k.check == nil {
		return nil
	}
	return k.check(text)
}
