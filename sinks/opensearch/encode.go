package opensearch

import (
	"bytes"
	"strconv"

	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/item"
)

// encoder appends operations in the form of a bulk request: an action line and,
// for a Put, the document on the next.
type encoder struct {
	b []byte

	// Start of the last action line; most of a request are alike.
	action document.Action
	index  string
	prefix []byte
}

// add appends one checked operation. On an error it appends nothing, and the
// operation can never be written.
//
// A bulk request consists of lines, and a newline in a body would begin the next
// action. So add puts such a body on one line. The cluster judges all other
// bodies, which cannot affect their neighbours.
func (e *encoder) add(op *document.Op) error {
	if len(e.prefix) == 0 || op.Action != e.action || op.Index != e.index {
		e.begin(op.Action, op.Index)
	}
	b := append(e.b, e.prefix...)
	b = item.AppendString(b, op.ID)
	if op.Routing != "" {
		b = append(b, `,"routing":`...)
		b = item.AppendString(b, op.Routing)
	}
	switch op.Fence {
	case document.NoFence:
		b = append(b, "}}\n"...)
	case document.Unchanged:
		b = append(b, `,"if_seq_no":`...)
		b = strconv.AppendInt(b, op.Revision.SeqNo, 10)
		b = append(b, `,"if_primary_term":`...)
		b = strconv.AppendInt(b, op.Revision.PrimaryTerm, 10)
		b = append(b, "}}\n"...)
	case document.Newer, document.Exact:
		b = append(b, `,"version":`...)
		b = strconv.AppendInt(b, op.Version, 10)
		b = append(b, ",\"version_type\":\"external\"}}\n"...)
	case document.NewerOrEqual:
		b = append(b, `,"version":`...)
		b = strconv.AppendInt(b, op.Version, 10)
		b = append(b, ",\"version_type\":\"external_gte\"}}\n"...)
	}
	if op.Action == document.Put {
		body := object(op.Body)
		if !isObject(body) {
			return errNoObject
		}
		from := len(b)
		b = append(b, body...)
		if bytes.IndexByte(b[from:], '\n') >= 0 { // in the copy, which is in the cache
			var err error
			if b, err = appendCompact(b[:from], body); err != nil {
				return err
			}
		}
		b = append(b, '\n')
	}
	e.b = b
	return nil
}

func (e *encoder) begin(action document.Action, index string) {
	e.action, e.index = action, index
	e.prefix = append(e.prefix[:0], `{"`...)
	e.prefix = append(e.prefix, action.String()...)
	e.prefix = append(e.prefix, `":{"_index":`...)
	e.prefix = item.AppendString(e.prefix, index)
	e.prefix = append(e.prefix, `,"_id":`...)
}
