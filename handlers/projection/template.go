package projection

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/sluicehq/sluice/item"
)

// Template is a text with values of attributes, also for other code that makes texts
// from records; see the package comment.
type Template struct {
	source string
	parts  []part
	tail   string // text after the last part
}

// part is one attribute of a template, and the text before it.
type part struct {
	text   string
	path   string
	change []change
	// end is the first byte of the text after the value. With escapes set, it
	// is escaped in the value, like '%'.
	escapes bool
	end     byte
}

// change is one function of a template.
type change struct {
	name     string
	old, new string
}

// ParseTemplate parses a template. Its error has the byte offset of the mistake.
func ParseTemplate(source string) (Template, error) {
	t := Template{source: source}
	s := scanner{source: source}
	for {
		text, stop, err := s.until("{}")
		if err != nil {
			return t, err
		}
		switch stop {
		case 0:
			t.tail = text
			return t, nil
		case '}':
			return t, s.errorf(s.at-1, "'}' without '{'; write \\} for the character")
		}
		p := part{text: text}
		if err := s.part(&p); err != nil {
			return t, err
		}
		t.parts = append(t.parts, p)
	}
}

// parseID parses the template of an id. With several attributes it escapes the end
// of a value, so that different keys make different ids.
func parseID(source string) (Template, error) {
	t, err := ParseTemplate(source)
	if err != nil {
		return t, err
	}
	if len(t.parts) == 0 {
		return t, fmt.Errorf("template %q has no attribute: all items would be one document", source)
	}
	for i := 1; i < len(t.parts); i++ {
		between := t.parts[i].text
		if between == "" || strings.IndexByte("%0123456789ABCDEF", between[0]) >= 0 || between[0] >= utf8.RuneSelf {
			return t, fmt.Errorf("template %q has %q between {%s} and {%s}: want a text that begins with an ASCII character other than %%, 0-9 and A-F, so that it tells where the first ends",
				source, between, t.parts[i-1].path, t.parts[i].path)
		}
		t.parts[i-1].escapes, t.parts[i-1].end = true, between[0]
	}
	return t, nil
}

// scanner scans a template.
type scanner struct {
	source string
	at     int
}

func (s *scanner) errorf(at int, format string, args ...any) error {
	return fmt.Errorf("template %q, byte %d: %s", s.source, at, fmt.Sprintf(format, args...))
}

// until reads up to a character in stops, which it returns, or to the end, with 0.
// A backslash escapes the next character.
func (s *scanner) until(stops string) (text string, stop byte, err error) {
	var b strings.Builder
	for s.at < len(s.source) {
		c := s.source[s.at]
		s.at++
		switch {
		case c == '\\':
			if s.at == len(s.source) {
				return "", 0, s.errorf(s.at-1, "nothing follows the backslash")
			}
			b.WriteByte(s.source[s.at])
			s.at++
		case strings.IndexByte(stops, c) >= 0:
			return b.String(), c, nil
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), 0, nil
}

// part reads an attribute's path and its functions, after the '{'.
func (s *scanner) part(p *part) error {
	begun := s.at - 1
	path, stop, err := s.until("|{}")
	if err != nil {
		return err
	}
	if p.path = path; path == "" {
		return s.errorf(begun, "no attribute is named")
	}
	for stop == '|' {
		at := s.at
		var words []string
		for {
			var word string
			if word, stop, err = s.until(":|{}"); err != nil {
				return err
			}
			words = append(words, word)
			if stop != ':' {
				break
			}
		}
		c := change{name: words[0]}
		switch want := arguments[c.name]; {
		case want == nil:
			return s.errorf(at, "there is no function %q: want lower, trim:prefix or replace:old:new", c.name)
		case len(words)-1 != *want:
			return s.errorf(at, "%s has %d arguments, want %d", c.name, len(words)-1, *want)
		case *want > 0 && words[1] == "":
			return s.errorf(at, "the first argument of %s is empty", c.name)
		case *want > 0:
			c.old = words[1]
		}
		if len(words) > 2 {
			c.new = words[2]
		}
		p.change = append(p.change, c)
	}
	switch stop {
	case 0:
		return s.errorf(begun, "'{' without '}'; write \\{ for the character")
	case '{':
		return s.errorf(s.at-1, "'{' within an attribute; write \\{ for the character")
	}
	return nil
}

// arguments is the number of arguments of each function.
var arguments = map[string]*int{"lower": new(0), "trim": new(1), "replace": new(2)}

// source is the item in which templates look up attributes.
type source struct {
	image item.Item
	keys  item.Item // for attributes that image lacks
}

func (s source) lookup(path string) (item.Value, bool) {
	if v, ok := s.image.Lookup(path); ok {
		return v, true
	}
	return s.keys.Lookup(path)
}

// fault describes why an attribute cannot be used; the zero fault is none.
type fault struct {
	path string
	kind item.Kind // item.Invalid: missing
}

func (f fault) err(t Template) error {
	if f.kind == item.Invalid {
		return fmt.Errorf("template %q: the item has no attribute %q", t.source, f.path)
	}
	return fmt.Errorf("template %q: attribute %q is of type %v, want S, N or B", t.source, f.path, f.kind)
}

// append appends the template with its values.
func (t *Template) append(dst []byte, from source) ([]byte, fault) {
	for i := range t.parts {
		p := &t.parts[i]
		dst = append(dst, p.text...)
		v, ok := from.lookup(p.path)
		if !ok {
			return dst, fault{path: p.path}
		}
		start := len(dst)
		if dst, ok = v.AppendText(dst); !ok {
			return dst, fault{p.path, v.Kind()}
		}
		for _, c := range p.change {
			dst = c.apply(dst, start)
		}
		if p.escapes {
			dst = escape(dst, start, p.end)
		}
	}
	return append(dst, t.tail...), fault{}
}

// apply applies the function to dst[start:].
func (c change) apply(dst []byte, start int) []byte {
	value := dst[start:]
	switch c.name {
	case "lower":
		for i, b := range value {
			if b >= utf8.RuneSelf {
				return append(dst[:start], bytes.ToLower(value)...)
			}
			if b-'A' < 26 {
				value[i] = b | 0x20
			}
		}
	case "trim":
		if len(value) >= len(c.old) && string(value[:len(c.old)]) == c.old {
			return append(dst[:start], value[len(c.old):]...)
		}
	case "replace":
		if len(c.old) == 1 && len(c.new) == 1 {
			for i, b := range value {
				if b == c.old[0] {
					value[i] = c.new[0]
				}
			}
			return dst
		}
		return append(dst[:start], bytes.ReplaceAll(value, []byte(c.old), []byte(c.new))...)
	}
	return dst
}

// escape replaces '%' and c in dst[start:] by a percent sign with two hexadecimal
// digits.
func escape(dst []byte, start int, c byte) []byte {
	value := dst[start:]
	if bytes.IndexByte(value, c) < 0 && bytes.IndexByte(value, '%') < 0 {
		return dst
	}
	const hex = "0123456789ABCDEF"
	value = bytes.Clone(value)
	dst = dst[:start]
	for _, b := range value {
		if b == c || b == '%' {
			dst = append(dst, '%', hex[b>>4], hex[b&15])
		} else {
			dst = append(dst, b)
		}
	}
	return dst
}
