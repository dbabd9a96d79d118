package config

import (
	"time"
)

// Duration is a duration such as 30s, 5m or 1h30m.
type Duration time.Duration

// Strings is one string or a list of them.
type Strings []string

// KeyFrom maps a parent's key attributes to the child's attributes with the same
// values.
type KeyFrom map[string]string

// Texts are named texts in file order.
type Texts []Text

// Text is a name and its text.
type Text struct{ Name, Value string }

// Fields are fields of a document in file order.
type Fields []Field

// Field is a field of a document: a template, or a constant of another type.
type Field struct {
	Name  string
	Value any // string, bool, int64, float64 or nil
}

// Duration returns d as a time.Duration.
func (d Duration) Duration() time.Duration { return time.Duration(d) }
