package sluice

import (
	"slices"
	"strings"
)

// Clone returns a copy of r that shares no memory with r's page. Keeping the copy
// does not keep the page.
func (r *Record) Clone() *Record {
	c := *r
	c.EventID = strings.Clone(r.EventID)
	c.Sequence = Sequence(strings.Clone(string(r.Sequence)))
	c.Keys, c.Old, c.New = r.Keys.Clone(), r.Old.Clone(), r.New.Clone()
	c.raw = slices.Clone(r.raw)
	return &c
}
