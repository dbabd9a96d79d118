package manhunt

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/handlers/projection"
	"github.com/sluicehq/sluice/item"
)

// Templates are messages to contacts, by type of method. Each has the members
// subject and text, which are texts, and body, which is an object. They contain
// attributes in braces: {metadata.incident}, {contact.name}. A text of the body
// that is exactly one attribute keeps the attribute's type.
type Templates map[string]sluice.Item

//go:embed templates.json
var defaultTemplates []byte

// members are the required members by type of method; other types may have any.
var members = map[string][]string{"call": {"text"}, "text": {"text"}, "email": {"subject", "text"}, "webhook": {"body"}}

// roots are where a template finds its attributes.
var roots = []string{"metadata", "contact", "search", "method", "step", "dedupeKey"}

// ParseTemplates parses templates from JSON: {"email": {"subject": "…", "text":
// "…"}}. Types missing in data use the default templates; nil uses them for all.
func ParseTemplates(data []byte) (Templates, error) {
	all := Templates{}
	for _, data := range [][]byte{defaultTemplates, data} {
		if data == nil {
			continue
		}
		it, err := item.FromJSON(data)
		if err != nil {
			return nil, fmt.Errorf("templates: %w", err)
		}
		for typ, v := range it.All() {
			all[typ] = v.Map()
			if err := checkTemplate(v); err != nil {
				return nil, fmt.Errorf("templates: %s: %w", typ, err)
			}
			for _, name := range members[typ] {
				if _, there := v.Lookup(name); !there {
					return nil, fmt.Errorf("templates: %s: %s is missing", typ, name)
				}
			}
		}
	}
	return all, nil
}

// checkTemplate returns the mistakes in the members of a template.
func checkTemplate(template item.Value) error {
	if template.Kind() != item.M {
		return errors.New("want an object with subject, text or body")
	}
	for name, v := range template.Map().All() {
		var err error
		switch {
		case (name == "subject" || name == "text") && v.Kind() == item.S:
			err = checkText(v.Str())
		case name == "body" && v.Kind() == item.M:
			err = eachText(v, checkText)
		case name == "subject" || name == "text":
			err = errors.New("want a text")
		case name == "body":
			err = errors.New("want an object")
		default:
			return fmt.Errorf("there is no member %q: want subject, text or body", name)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// eachText calls f with each text of a JSON value, until one is wrong.
func eachText(v item.Value, f func(text string) error) error {
	switch v.Kind() {
	case item.S:
		return f(v.Str())
	case item.M:
		for _, v := range v.Map().All() {
			if err := eachText(v, f); err != nil {
				return err
			}
		}
	case item.L:
		for v := range v.List() {
			if err := eachText(v, f); err != nil {
				return err
			}
		}
	case item.N, item.BOOL, item.NULL:
	default:
		return fmt.Errorf("type %v is none of JSON", v.Kind())
	}
	return nil
}

func checkText(source string) error {
	t, err := projection.ParseTemplate(source)
	if err != nil {
		return err
	}
	for _, path := range t.Paths() {
		if root, _, _ := strings.Cut(path, "."); !slices.Contains(roots, root) {
			return fmt.Errorf("{%s} begins with none of %s", path, strings.Join(roots, ", "))
		}
	}
	return nil
}

// maxOwn is how long a contact's own template may be, in bytes of its item.
const maxOwn = 8 << 10

// checkOwn returns the mistakes in the template of a contact's method. Its author
// is not trusted: the template must be short and have no functions, which can
// multiply their input.
func checkOwn(template item.Value) error {
	if len(template.Raw()) > maxOwn {
		return fmt.Errorf("it has %d bytes, want %d at most", len(template.Raw()), maxOwn)
	}
	if err := checkTemplate(template); err != nil {
		return err
	}
	return eachText(template, func(text string) error {
		if hasFunction(text) {
			return errors.New("a method's own template has no functions: write {name}, not {name|lower}")
		}
		return nil
	})
}

// hasFunction reports whether a template has a '|' within braces. A backslash takes
// the character after it as it is.
func hasFunction(source string) bool {
	within := false
	for i := 0; i < len(source); i++ {
		switch source[i] {
		case '\\':
			i++
		case '{':
			within = true
		case '}':
			within = false
		case '|':
			if within {
				return true
			}
		}
	}
	return false
}
