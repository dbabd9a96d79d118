package writer

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

var (
	// ErrReference says that a document refers to a missing one. A
	// [*ReferenceError] names it.
	ErrReference = errors.New("reference to a document that does not exist")
	// ErrReferenced says that others refer to a document; as a
	// [*ReferencedError] it says who.
	ErrReferenced = errors.New("others refer to the document")

	ErrExists   = errors.New("the document exists, or another kind of the same")
	ErrNotFound = errors.New("the document does not exist")
	// ErrBusy says that others kept changing the document or what it refers to;
	// nothing was written.
	ErrBusy = errors.New("the document keeps changing")
)

// ReferenceError is an ErrReference with the missing documents.
type ReferenceError struct{ Missing []Reference }

func (e *ReferenceError) Error() string { return fmt.Sprintf("%v: %v", ErrReference, e.Missing) }
func (e *ReferenceError) Unwrap() error { return ErrReference }

// ReferencedError is an ErrReferenced: who refers to the document, the first
// [MaxForeignKeys] of them.
type ReferencedError struct{ ForeignKeys []ForeignKey }

func (e *ReferencedError) Error() string { return fmt.Sprintf("%v: %v", ErrReferenced, e.ForeignKeys) }
func (e *ReferencedError) Unwrap() error { return ErrReferenced }

// InvalidError says why a document is invalid, whatever the table contains.
type InvalidError struct{ Text string }

func (e *InvalidError) Error() string { return "document: " + e.Text }

// Answer is what an HTTP API answers to an error of the Writer: a status and a
// JSON object. What an error that is not the client's fault says stays inside.
func Answer(err error) (status int, body []byte) {
	var missing *ReferenceError
	var referenced *ReferencedError
	var bad *InvalidError
	answer := struct {
		Error       string       `json:"error"`
		References  []Reference  `json:"references,omitempty"`
		ForeignKeys []ForeignKey `json:"foreignKeys,omitempty"`
	}{Error: "Internal error"}
	status = http.StatusInternalServerError
	switch {
	case errors.As(err, &missing):
		status, answer.References = http.StatusBadRequest, missing.Missing
		answer.Error = "Unable to write this item because it refers to items that do not exist"
	case errors.As(err, &referenced):
		status, answer.ForeignKeys = http.StatusConflict, referenced.ForeignKeys
		answer.Error = "Unable to delete this item because there are foreign keys pointing to it"
	case errors.As(err, &bad):
		status, answer.Error = http.StatusBadRequest, bad.Text
	case errors.Is(err, ErrExists):
		status, answer.Error = http.StatusConflict, "Unable to create this item because it exists"
	case errors.Is(err, ErrNotFound):
		status, answer.Error = http.StatusNotFound, "There is no such item"
	case errors.Is(err, ErrBusy):
		status, answer.Error = http.StatusConflict, "Others are changing this item; try again"
	}
	body, err = json.Marshal(answer)
	if err != nil {
		panic(err) // strings alone
	}
	return status, body
}
