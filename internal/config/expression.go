package config

import (
	"fmt"

	"github.com/sluicehq/sluice"
)

// Expression compiles an expression, as the field when of a route has it, for
// records whose types are those of the configuration. The function reports
// whether a record fulfils it; an error of it is one of types, which the same
// record has again. It is safe for concurrent use.
func (c *Config) Expression(text string) (func(*sluice.Record) (bool, error), error) {
	w, err := compileWhen(text, c.resolver())
	if err != nil {
		return nil, fmt.Errorf("expression %q: %w", text, err)
	}
	return w.match, nil
}
