package document

import (
	"encoding/json"
	"fmt"
)

// Mark is what a document says of the change that it shows, in a field of its
// own.
type Mark struct {
	// Sequence is greater, as a string, for a later change.
	Sequence string `json:"sequence"`
	// Deleted is when a tombstone was written, in RFC 3339; empty of a document.
	Deleted string `json:"deleted,omitempty"`
}

// Mark returns the mark that a document has in a field; the zero Mark if it has
// none or is not Found. Another value in that field is an error.
func (d Doc) Mark(field string) (Mark, error) {
	if !d.Found {
		return Mark{}, nil
	}
	var mark Mark
	var source map[string]json.RawMessage
	err := json.Unmarshal(d.Source, &source)
	if text, ok := source[field]; err == nil && ok {
		err = json.Unmarshal(text, &mark)
	}
	if err != nil {
		return Mark{}, fmt.Errorf("the field %q of the document is not the mark of a projection by sequence: does another program write it?", field)
	}
	return mark, nil
}
