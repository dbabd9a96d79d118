// Package brake has the error of a recount that would lower too many counters, with
// the numbers that sluice recount prints.
package brake

import "fmt"

// Error says that a recount lowered no counter. rollup.Recount.MaxDeletes has the
// rules.
type Error struct {
	Lowered int `json:"lowered"` // counters above the real number
	Parents int `json:"parents"` // parents looked at
	Allowed int `json:"allowed"` // counters that may be lowered

	Empty       bool `json:"empty,omitempty"`       // no parent has a child
	MostlyEmpty bool `json:"mostlyEmpty,omitempty"` // more of them have no child than parents have one
}

// Error returns the reason and advice.
func (e *Error) Error() string {
	are := "are"
	if e.Lowered == 1 {
		are = "is"
	}
	text := fmt.Sprintf("no counter is lowered: %d of %d %s higher than the count", e.Lowered, e.Parents, are)
	const check = "; check the name of the children's table or index, the account and the Region"
	switch {
	case e.Empty:
		return text + ", and no parent has a child" + check
	case e.MostlyEmpty:
		return text + ", and most of their parents have no child" + check
	}
	return text + fmt.Sprintf(", and %d may be lowered; look at them first", e.Allowed)
}
