package configref

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/sluicehq/sluice/internal/config"
)

// mark is a line of docs/configuration.md. Reference makes everything below it.
const mark = "<!-- Below this line all is made by `go generate ./internal/config` of the comments in the code. -->\n"

// Reference makes docs/configuration.md again. It keeps the text above mark, and makes
// the lists below from the types. dir is the folder of package config.
func Reference(dir string, page []byte) ([]byte, error) {
	head, _, ok := strings.Cut(string(page), mark)
	if !ok {
		return nil, fmt.Errorf("the page has no line %q", mark)
	}
	all, err := objects(dir)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	b.WriteString(head + mark)
	for _, o := range all {
		title := o.name
		if o.name == "Config" {
			title = "The file"
		}
		fmt.Fprintf(&b, "\n### %s\n\n", title)
		if text := meaning(o); text != "" {
			fmt.Fprintf(&b, "%s\n\n", escape(text))
		}
		for _, p := range o.fields {
			is := p.kind(p.typ)
			switch {
			case p.required():
				is += ", required"
			case p.def != "" && p.def != "false":
				if is == "integer" || is == "duration" { // the default shows the kind
					is = ""
				}
				is += ", default `" + p.def + "`"
			}
			if is = strings.TrimPrefix(is, ", "); is != "" {
				is = " (" + is + ")"
			}
			fmt.Fprintf(&b, "- `%s`%s: %s\n", p.name, is, escape(strings.TrimSuffix(p.doc, " Default "+p.def+".")))
		}
	}
	return []byte(b.String()), nil
}

// meaning returns the comment of a type. It drops the first sentence, "X is …", if more
// follow: the title says the same.
func meaning(o object) string {
	_, rest, _ := strings.Cut(o.doc, ". ")
	if o.name == "Config" {
		return ""
	}
	return rest
}

func escape(s string) string {
	return strings.NewReplacer("<", `\<`, "*", `\*`).Replace(s)
}

func split(values string) []string { return strings.Split(values, "|") }

// kind names a type for readers.
func (p property) kind(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[config.Duration]():
		return "duration" + p.limits()
	case reflect.TypeFor[config.Strings]():
		return "list"
	case reflect.TypeFor[config.KeyFrom]():
		return "list or mapping"
	case reflect.TypeFor[config.Texts](), reflect.TypeFor[config.Fields]():
		return "mapping"
	case reflect.TypeFor[config.EntityType]():
		return "[EntityType](#entitytype) or list"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return p.kind(t.Elem())
	case reflect.Struct:
		return "[" + t.Name() + "](#" + strings.Map(unicode.ToLower, t.Name()) + ")"
	case reflect.Map:
		if of := (property{}).kind(t.Elem()); of != "" {
			return "mapping of " + of
		}
		return "mapping"
	case reflect.Slice:
		return "list of " + property{}.kind(t.Elem())
	case reflect.Bool:
		return "true/false"
	case reflect.Int, reflect.Int64:
		return "integer" + p.limits()
	case reflect.Float64:
		return "number" + p.limits()
	}
	if values, ok := p.is["one of"]; ok {
		return "`" + strings.Join(split(values), "`, `") + "`"
	}
	return "" // a text needs no type, as the page says
}

// positive are limits that need no mention.
var positive = []string{"0", "0s", "1", "1ms", "1s"}

func (p property) limits() string {
	var s string
	for _, r := range []struct{ rule, sign string }{{"min", "≥"}, {"above", ">"}, {"max", "≤"}} {
		if v, ok := p.is[r.rule]; ok && !slices.Contains(positive, v) {
			s += ", " + r.sign + v
		}
	}
	return s
}
