package document

import (
	"encoding/json"
	"fmt"
)

// Mark is the field of a document that names the change it shows.
type Mark struct {
	// Sequence sorts as a string; a later change has a greater one.
	Sequence string `json:"sequence"`
	// Deleted is the time of a tombstone, in RFC 3339; empty in a document.
	Deleted string `json:"deleted,omitempty"`
}

// Mark returns the mark in a field of the document. It is zero if the document has
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
