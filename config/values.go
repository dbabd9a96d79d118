package config

import "time"

// Duration is written as 30s, 5m, 1h30m.
type Duration time.Duration

// Strings is one string or a list of them.
type Strings []string

// KeyFrom is a parent's key attributes, each with the child's that it is equal to.
type KeyFrom map[string]string
