package item

import "fmt"

// SyntaxError says why and where an attribute map is invalid.
type SyntaxError struct {
	Path   string // of the attribute, dotted; empty for the map itself
	Offset int    // in bytes from the start of the parsed data
	Msg    string
}

func (e *SyntaxError) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("offset %d: %s", e.Offset, e.Msg)
	}
	return fmt.Sprintf("attribute %q, offset %d: %s", e.Path, e.Offset, e.Msg)
}
