package config

import (
	"fmt"

	"github.com/sluicehq/sluice"
)

// Expression compiles an expression like a route's when, with the entity types of the
// configuration. The function reports whether a record fulfils the expression. Its
// errors are about types, and occur for the same record again. It is safe for
// concurrent use.
func (c *Config) Expression(text string) (func(*sluice.Record) (bool, error), error) {
	w, err := compile(text, c.EntityType.resolver())
	if err != nil {
		return nil, fmt.Errorf("expression %q: %w", text, err)
	}
	return w.match, nil
}
