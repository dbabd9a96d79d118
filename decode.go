package sluice

import "errors"

// Source is what a GetRecords answer does not say about its records.
type Source struct {
	StreamARN string
	ShardID   string
}

// Page is what one envelope held.
type Page struct {
	Records []Record

	// NextShardIterator is set by GetRecords answers; empty on a shard's end.
	NextShardIterator string

	// Window is set when a Lambda event belongs to a tumbling window.
	Window *Window
}

// Window is the part of a tumbling-window event that its answer repeats.
type Window struct {
	State []byte // raw JSON value of "state"; nil when absent
	Final bool   // isFinalInvokeForWindow
}

// DecodeEvent decodes what Lambda hands to a function: {"Records":[…]} from an
// event source mapping or a bare array from EventBridge Pipes. Anything else
// is refused with an error that says what it is.
//
// The page's images alias data. A record that cannot be decoded is in the page
// with [Record.Err] set; an error is returned only when data cannot be split
// into records.
func DecodeEvent(data []byte) (Page, error) { return Page{}, errors.New("not built") }

// DecodeGetRecords decodes the body of a GetRecords answer, as DecodeEvent does.
func DecodeGetRecords(data []byte, src Source) (Page, error) { return Page{}, errors.New("not built") }

// DecodeRecord decodes one record: a line of NDJSON, or a dead letter's.
// The returned record is never nil; its Err says whether it could be decoded.
func DecodeRecord(data []byte) *Record { return &Record{raw: data, err: errors.New("not built")} }

// Clone returns a copy of r that shares no memory with its page.
func (r *Record) Clone() *Record { c := *r; return &c }
