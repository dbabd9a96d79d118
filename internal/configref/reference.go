package configref

import (
	"fmt"
	"reflect"
	"strings"
	"unicode"

	"github.com/sluicehq/sluice/internal/config"
)

// mark is the line of docs/configuration.md below which all is made by Reference.
const mark = "<!-- Below this line all is made by `go generate ./internal/config` of the comments in the code. -->\n"

// Reference makes docs/configuration.md again: what stands above its mark is
// kept, and the tables below are made of the types. dir is that of package
// config.
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
		fmt.Fprintf(&b, "\n### %s\n\n%s\n\n| field | type | default | meaning |\n|---|---|---|---|\n", title, escape(o.doc))
		for _, p := range o.fields {
			def := ""
			switch {
			case p.required():
				def = "required"
			case p.def != "":
				def = "`" + p.def + "`"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", p.name, p.kind(p.typ), def, escape(strings.TrimSuffix(p.doc, " Default "+p.def+".")))
		}
	}
	return []byte(b.String()), nil
}

func escape(s string) string {
	return strings.NewReplacer("|", `\|`, "<", `\<`, "*", `\*`).Replace(s)
}

func split(values string) []string { return strings.Split(values, "|") }

// kind names a type for readers.
func (p property) kind(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[config.Duration]():
		return "duration" + p.limits()
	case reflect.TypeFor[config.Strings]():
		return "text or list"
	case reflect.TypeFor[config.KeyFrom]():
		return "list, or mapping of text"
	case reflect.TypeFor[config.Texts]():
		return "mapping of text"
	case reflect.TypeFor[config.Fields]():
		return "mapping"
	case reflect.TypeFor[config.EntityType]():
		return "text, [EntityType](#entitytype), or list"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return p.kind(t.Elem())
	case reflect.Struct:
		return "[" + t.Name() + "](#" + strings.Map(unicode.ToLower, t.Name()) + ")"
	case reflect.Map:
		return "mapping of " + property{}.kind(t.Elem())
	case reflect.Slice:
		return "list of " + property{}.kind(t.Elem())
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "integer" + p.limits()
	case reflect.Float64:
		return "number" + p.limits()
	}
	if values, ok := p.is["one of"]; ok {
		return "`" + strings.Join(split(values), "`, `") + "`"
	}
	return "text"
}

func (p property) limits() string {
	var s string
	for _, r := range []struct{ rule, sign string }{{"min", "≥ "}, {"above", "> "}, {"max", "≤ "}} {
		if v, ok := p.is[r.rule]; ok && v != "0s" {
			s += ", " + r.sign + v
		}
	}
	return s
}
