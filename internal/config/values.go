package config

import (
	"time"
)

// Duration is written as 30s, 5m, 1h30m.
type Duration time.Duration

// Strings is one string or a list of them.
type Strings []string

// KeyFrom is a parent's key attributes, each with the child's that it is equal to.
type KeyFrom map[string]string

// Texts are texts by names that come in the order of the file.
type Texts []Text

// Text is a name and its text.
type Text struct{ Name, Value string }

// Fields are fields of a document in the order of the file.
type Fields []Field

// Field is a field of a document: a template, or a constant that is no text.
type Field struct {
	Name  string
	Value any // string, bool, int64, float64 or nil
}

// Duration is d of package time.
func (d Duration) Duration() time.Duration { return time.Duration(d) }
