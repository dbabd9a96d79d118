package manhunt

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/handlers/escalation"
	"github.com/sluicehq/sluice/handlers/projection"
	"github.com/sluicehq/sluice/item"
)

// Message is a message to a contact. The type of the method decides which fields
// are set.
type Message struct {
	Subject string // one line, fit for a header
	Text    string // of a call or a text message one line; of all others plain text
	Body    string // a JSON object
}

// Limits of a message.
const (
	maxMessage = 64 << 10 // bytes that attributes and templates may come to
	maxSubject = 250      // bytes, and the rest is cut: with its name a header line has 998 at most (RFC 5322), and encoding makes it longer
)

// message returns the message for the contact: by the method's own template if it
// has one, else by that of its type. An error is permanent.
func (a *app) message(t escalation.Try, typ string, contact sluice.Item) (m Message, err error) {
	own, there := t.Step.Item.Lookup("template")
	if there {
		if err := checkOwn(own); err != nil {
			return m, fmt.Errorf("the method's template: %w", err)
		}
	}
	w := writer{values: values(t, contact), left: maxMessage}
	part := func(name string) (item.Value, bool) {
		if v, there := own.Lookup(name); there {
			return v, true
		}
		return a.d.Templates[typ].Lookup(name)
	}
	for _, p := range []struct {
		name  string
		into  *string
		clean func(string) string
	}{{"subject", &m.Subject, oneLine}, {"text", &m.Text, textOf(typ)}} {
		source, there := part(p.name)
		if !there {
			continue
		}
		text, err := w.text(source.Str())
		if err != nil {
			return m, fmt.Errorf("%s: %w", p.name, err)
		}
		*p.into = p.clean(string(text))
	}
	m.Subject = shorten(m.Subject, maxSubject)
	if source, there := part("body"); there {
		body, err := w.json(nil, source)
		if err != nil {
			return m, fmt.Errorf("body: %w", err)
		}
		m.Body = string(body)
	}
	return m, nil
}

// values are the values for templates. Of the contact they have all attributes
// except maps and lists.
func values(t escalation.Try, contact sluice.Item) sluice.Item {
	about := item.Of(item.String("id", t.Escalation.ID), item.String("domainId", attribute(t.Escalation.Item, "domainId")), item.String("started", attribute(t.Escalation.Item, "GSI1SK")))
	whom := contact
	for name, v := range contact.All() {
		if v.Kind() == item.M || v.Kind() == item.L {
			whom = whom.Without(name)
		}
	}
	whom = whom.With(item.String("id", t.Escalation.Ladder))
	if name := attribute(contact, "GSI1SK"); name != "" {
		whom = whom.With(item.String("name", name))
	}
	how := item.Of(item.String("id", t.Step.ID), item.String("type", attribute(t.Step.Item, "type")))
	if name := attribute(t.Step.Item, "name"); name != "" {
		how = how.With(item.String("name", name))
	}
	metadata, _ := t.Escalation.Item.Lookup("metadata")
	data := metadata.Map()
	if !data.Exists() {
		data = item.Of()
	}
	return item.Of(
		item.Map("metadata", data), item.Map("contact", whom), item.Map("search", about), item.Map("method", how),
		item.Number("step", strconv.FormatInt(t.Number, 10)), item.String("dedupeKey", t.DedupeKey),
	)
}

// writer fills in templates.
type writer struct {
	values sluice.Item
	left   int // bytes of the message
}

// text fills in a template.
func (w *writer) text(source string) ([]byte, error) {
	t, err := projection.ParseTemplate(source)
	if err != nil {
		return nil, err
	}
	if err := w.spend(source, t.Paths(), true); err != nil {
		return nil, err
	}
	return t.Append(nil, w.values, sluice.Item{})
}

// spend counts what a template comes to before it is filled in, and finds attributes
// that are missing or, where it makes a text, make none. Attributes count as they are
// stored, quoted.
func (w *writer) spend(source string, paths []string, text bool) error {
	w.left -= len(source)
	for _, path := range paths {
		v, there := w.values.Lookup(path)
		if !there {
			return fmt.Errorf("{%s} is missing: set it, or leave it out of the template", path)
		}
		if text {
			if _, ok := v.AppendText(nil); !ok {
				return fmt.Errorf("{%s} is of type %v, want a text or a number", path, v.Kind())
			}
		}
		w.left -= len(v.Raw())
	}
	if w.left < 0 {
		return fmt.Errorf("the message has more than %d bytes", maxMessage)
	}
	return nil
}

// json fills in the texts of a JSON value.
func (w *writer) json(dst []byte, v item.Value) ([]byte, error) {
	switch v.Kind() {
	case item.S:
		t, err := projection.ParseTemplate(v.Str())
		if err != nil {
			return dst, err
		}
		if path, alone := t.Single(); alone {
			if err := w.spend("", []string{path}, false); err != nil {
				return dst, err
			}
			v, _ := w.values.Lookup(path)
			return v.AppendJSON(dst), nil
		}
		text, err := w.text(v.Str())
		return item.AppendString(dst, text), err
	case item.M:
		dst = append(dst, '{')
		for name, v := range v.Map().All() {
			if dst[len(dst)-1] != '{' {
				dst = append(dst, ',')
			}
			dst = append(item.AppendString(dst, []byte(name)), ':')
			var err error
			if dst, err = w.json(dst, v); err != nil {
				return dst, err
			}
		}
		return append(dst, '}'), nil
	case item.L:
		dst = append(dst, '[')
		for v := range v.List() {
			if dst[len(dst)-1] != '[' {
				dst = append(dst, ',')
			}
			var err error
			if dst, err = w.json(dst, v); err != nil {
				return dst, err
			}
		}
		return append(dst, ']'), nil
	default:
		return v.AppendJSON(dst), nil
	}
}

// textOf returns how the text of a type of method is cleaned. What is spoken, or sent
// as a text message, is one line.
func textOf(typ string) func(string) string {
	if typ == "call" || typ == "text" {
		return oneLine
	}
	return plain
}

// oneLine replaces each run of control characters, newlines and surrounding spaces
// by one space, so that no text ends a header.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if isControl(r) {
			return ' '
		}
		return r
	}, text)
	return strings.Join(strings.Fields(text), " ")
}

// shorten cuts a text that is longer than some bytes between two characters, and marks
// the cut by "…".
func shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	const mark = "…"
	most -= len(mark)
	for !utf8.RuneStart(text[most]) {
		most--
	}
	return strings.TrimRight(text[:most], " ") + mark
}

// plain is a text without control characters but line ends and tabs.
func plain(text string) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		if isControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, text)
}

// isControl is also true of the separators of lines and paragraphs.
func isControl(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029'
}
