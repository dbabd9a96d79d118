// Package schema holds the JSON Schema of configuration files. It is made of the
// types of package config by `go generate ./internal/config`.
package schema

import _ "embed" // for what follows

// JSON is the schema, of draft 2020-12.
//
//go:embed sluice.schema.json
var JSON []byte
