package cascade

import "slices"

// Table returns the table of the parents.
func (c *Cascade) Table() string { return c.c.Table }

// Key returns the names of the parents' key attributes, as in [Config].
func (c *Cascade) Key() []string { return slices.Clone(c.c.Key) }
