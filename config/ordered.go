package config

import (
	"fmt"

	"github.com/goccy/go-yaml"
)

// Texts are texts by names that come in the order of the file.
type Texts []Text

// Text is a name and its text.
type Text struct{ Name, Value string }

// UnmarshalYAML reads a mapping.
func (t *Texts) UnmarshalYAML(unmarshal func(any) error) error {
	fields, err := ordered(unmarshal)
	if err != nil {
		return err
	}
	for _, f := range fields {
		value, ok := f.Value.(string)
		if !ok {
			return fmt.Errorf("%s is %v, want a text", f.Name, f.Value)
		}
		*t = append(*t, Text{f.Name, value})
	}
	return nil
}

// Fields are fields of a document in the order of the file.
type Fields []Field

// Field is a field of a document: a template, or a constant that is no text.
type Field struct {
	Name  string
	Value any // string, bool, uint64, int64, float64 or nil
}

// UnmarshalYAML reads a mapping.
func (f *Fields) UnmarshalYAML(unmarshal func(any) error) error {
	fields, err := ordered(unmarshal)
	if err != nil {
		return err
	}
	for _, field := range fields {
		switch field.Value.(type) {
		case nil, string, bool, uint64, int64, int, float64:
			*f = append(*f, field)
		default:
			return fmt.Errorf("%s is a list or a mapping, want a text, a number, true, false or null", field.Name)
		}
	}
	return nil
}

func ordered(unmarshal func(any) error) ([]Field, error) {
	var all yaml.MapSlice
	if err := unmarshal(&all); err != nil {
		return nil, err
	}
	fields := make([]Field, 0, len(all))
	for _, e := range all {
		name, ok := e.Key.(string)
		if !ok {
			return nil, fmt.Errorf("the name %v is not a text: put it into quotes", e.Key)
		}
		fields = append(fields, Field{name, e.Value})
	}
	return fields, nil
}
