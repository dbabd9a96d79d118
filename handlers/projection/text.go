package projection

import "github.com/sluicehq/sluice"

// Append appends the text with the attributes of image, else of keys. An error
// names a missing attribute, or one whose type makes no text. Discard the output
// after an error.
func (t Template) Append(dst []byte, image, keys sluice.Item) ([]byte, error) {
	dst, f := t.append(dst, source{image: image, keys: keys})
	if f.path != "" {
		return dst, f.err(t)
	}
	return dst, nil
}

// Paths returns the attributes, or dotted paths, in the text.
func (t Template) Paths() []string {
	var paths []string
	for _, p := range t.parts {
		paths = append(paths, p.path)
	}
	return paths
}

// Single returns the attribute of a template that consists of it alone: "{price}".
func (t Template) Single() (path string, ok bool) {
	if len(t.parts) != 1 {
		return "", false
	}
	p := t.parts[0]
	return p.path, p.text == "" && t.tail == "" && len(p.change) == 0
}
