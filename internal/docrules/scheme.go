package docrules

import "fmt"

// SchemeError reports an index that a program must not write to: its documents are
// versioned in another way, or its mapping or alias does not fit.
type SchemeError struct {
	Name   string // of the index or alias
	Reason string
	Do     string
}

func (e *SchemeError) Error() string {
	return fmt.Sprintf("opensearch: %s: %s: %s", e.Name, e.Reason, e.Do)
}
