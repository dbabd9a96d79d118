package projection

import "github.com/sluicehq/sluice"

// Template is a text with attributes in it, as the package comment says, for
// others who make texts of records.
type Template struct{ t template }

// ParseTemplate reads a template. An error names the byte where it is wrong.
func ParseTemplate(source string) (Template, error) {
	t, err := parseTemplate(source)
	return Template{t}, err
}

// Append appends the text with the attributes of image, else those of keys. An
// error says which attribute is missing, or is of a type that makes no text; what
// was appended until then is to be dropped.
func (t Template) Append(dst []byte, image, keys sluice.Item) ([]byte, error) {
	dst, f := t.t.append(dst, source{image: image, keys: keys})
	if f.path != "" {
		return dst, f.err(t.t)
	}
	return dst, nil
}

// Paths returns the attributes, or dotted paths, that the text has in it.
func (t Template) Paths() []string {
	var paths []string
	for _, p := range t.t.parts {
		paths = append(paths, p.path)
	}
	return paths
}

// Single returns the attribute of a template that is nothing else: "{price}".
func (t Template) Single() (path string, ok bool) {
	if len(t.t.parts) != 1 {
		return "", false
	}
	p := t.t.parts[0]
	return p.path, p.text == "" && t.t.tail == "" && len(p.change) == 0
}
