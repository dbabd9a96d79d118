package configref

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"

	"github.com/sluicehq/sluice/internal/config"
)

// where the schema is published.
const id = "https://raw.githubusercontent.com/sluicehq/sluice/main/deploy/schema/sluice.schema.json"

type schema = map[string]any

// Schema makes the JSON Schema. dir is the folder of package config.
func Schema(dir string) ([]byte, error) {
	all, err := objects(dir)
	if err != nil {
		return nil, err
	}
	defs := schema{
		"variable": schema{
			"description": "A variable of the environment: ${NAME} or ${NAME:-default}.",
			"type":        "string", "pattern": `\$\{[A-Za-z_][A-Za-z0-9_]*(:-[^}]*)?\}`,
		},
		"duration": schema{
			"description": "A duration: 30s, 5m, 1h30m.",
			"type":        "string", "pattern": `^(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h))+$`,
		},
		"longDuration": schema{
			"description": "A duration that is not zero: 30s, 5m, 1h30m.",
			"allOf":       []schema{ref("duration"), {"pattern": "[1-9]"}},
		},
		"strings": schema{
			"description": "One text, or a list of them.",
			"anyOf": []schema{
				{"type": "string", "minLength": 1},
				{"type": "array", "items": schema{"type": "string", "minLength": 1}, "minItems": 1, "uniqueItems": true},
			},
		},
	}
	for _, o := range all {
		defs[o.name] = o.schema()
	}
	defs["EntityType"] = entityType(defs["EntityType"].(schema))
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err = e.Encode(schema{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"$id":     id,
		"title":   "Sluice",
		"$ref":    "#/$defs/Config",
		"$defs":   defs,
	})
	return b.Bytes(), err
}

func (o object) schema() schema {
	properties := schema{}
	var required []string
	for _, p := range o.fields {
		one := p.schema()
		one["description"] = p.doc
		properties[p.name] = one
		if p.required() {
			required = append(required, p.name)
		}
	}
	s := schema{"type": "object", "additionalProperties": false, "properties": properties, "description": o.doc}
	if required != nil {
		s["required"] = required
	}
	switch o.name {
	case "AWS":
		properties["endpoints"].(schema)["propertyNames"] = schema{"enum": []string{"dynamodb", "sqs", "sts"}}
	case "Cascade", "Child":
		properties["key"].(schema)["maxItems"] = 2 // partition key and sort key
	case "Counter":
		properties["key"].(schema)["maxItems"], properties["key"].(schema)["maxProperties"] = 2, 2
	case "Escalate":
		do := func(values ...string) schema {
			return schema{"properties": schema{"do": schema{"enum": values}}, "required": []string{"do"}}
		}
		s["allOf"] = []schema{
			{"if": do("contact"), "then": schema{"required": []string{"contact"}}},
			{"if": do("start", "next", "resume"), "then": schema{"properties": schema{"contact": false}}},
		}
	case "Project":
		properties["version"] = schema{
			"description": properties["version"].(schema)["description"],
			"anyOf":       []schema{{"type": "string", "pattern": "^(sequence|none|(attribute|seconds|millis|micros):[^,]+(,[^,]+)?)$"}, ref("variable")},
		}
	case "Sink":
		s["minProperties"], s["maxProperties"] = 1, 1
	case "Source":
		s["anyOf"] = []schema{{"required": []string{"tables"}}, {"required": []string{"queues"}}}
	case "Route":
		var one []schema
		for _, handler := range config.Kinds() {
			one = append(one, schema{"required": []string{handler}})
		}
		s["oneOf"] = one
	}
	return s
}

// entityType is the schema of a text, a mapping with one field, or a list of these.
func entityType(object schema) schema {
	object["minProperties"], object["maxProperties"] = 1, 1
	properties := object["properties"].(schema)
	properties["attribute"].(schema)["minLength"] = 1
	properties["tables"].(schema)["additionalProperties"] = schema{"type": "string", "minLength": 1}
	one := []schema{{"type": "string", "minLength": 1}, object}
	return schema{
		"description": object["description"],
		"anyOf":       append(one, schema{"type": "array", "minItems": 1, "items": schema{"anyOf": one}}),
	}
}

func (p property) schema() schema {
	s := p.value(p.typ)
	if p.def == "" {
		return s
	}
	t := p.typ
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	s["default"] = p.def
	if n, err := strconv.ParseInt(p.def, 10, 64); err == nil && t.Kind() != reflect.String {
		s["default"] = n
	}
	if t.Kind() == reflect.Bool {
		s["default"] = p.def == "true"
	}
	return s
}

func ref(name string) schema { return schema{"$ref": "#/$defs/" + name} }

// orVariable also allows a variable, for a value that is not a text.
func orVariable(s schema) schema { return schema{"anyOf": []schema{s, ref("variable")}} }

func (p property) value(t reflect.Type) schema {
	switch t {
	case reflect.TypeFor[config.Duration]():
		if p.is["min"] == "0s" {
			return orVariable(ref("duration"))
		}
		return orVariable(ref("longDuration"))
	case reflect.TypeFor[config.Strings]():
		return ref("strings")
	case reflect.TypeFor[config.KeyFrom]():
		return schema{"anyOf": []schema{ref("strings"), names(schema{"type": "string"}, 1)}}
	case reflect.TypeFor[config.Texts]():
		return names(schema{"type": "string"}, 0)
	case reflect.TypeFor[config.Fields]():
		return names(schema{"type": []string{"string", "number", "boolean", "null"}}, 0)
	}
	switch t.Kind() {
	case reflect.Pointer:
		return p.value(t.Elem())
	case reflect.Struct:
		return ref(t.Name())
	case reflect.Map:
		least := 0
		if p.required() {
			least = 1
		}
		return names(property{is: map[string]string{"above": "0"}}.value(t.Elem()), least)
	case reflect.Slice:
		s := schema{"type": "array", "items": property{}.value(t.Elem())}
		if p.required() {
			s["minItems"] = 1
		}
		return s
	case reflect.Bool:
		return orVariable(schema{"type": "boolean"})
	case reflect.Int, reflect.Int64:
		return orVariable(p.bounds(schema{"type": "integer"}))
	case reflect.Float64:
		return orVariable(p.bounds(schema{"type": "number"}))
	}
	if values, ok := p.is["one of"]; ok {
		return orVariable(schema{"enum": split(values)})
	}
	s := schema{"type": "string"}
	if p.required() {
		s["minLength"] = 1
	}
	return s
}

// names is the schema of a mapping with names of the user's choice.
func names(of schema, least int) schema {
	s := schema{"type": "object", "additionalProperties": of, "propertyNames": schema{"minLength": 1}}
	if least > 0 {
		s["minProperties"] = least
	}
	return s
}

func (p property) bounds(s schema) schema {
	for rule, keyword := range map[string]string{"min": "minimum", "max": "maximum", "above": "exclusiveMinimum"} {
		if n, err := strconv.ParseInt(p.is[rule], 10, 64); err == nil {
			s[keyword] = n
		}
	}
	return s
}
