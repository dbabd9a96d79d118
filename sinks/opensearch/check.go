package opensearch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
)

// maxID is the limit of OpenSearch for an _id, in bytes.
const maxID = 512

// overhead is the approximate size of an action line without the names.
const overhead = 80

// check returns why op can never be written. Such an operation could fail a whole
// request. Its Body is checked during encoding.
func check(op *document.Op) error {
	switch {
	case op.Action != document.Put && op.Action != document.Delete:
		return fmt.Errorf("the Action is %v; want Put or Delete", op.Action)
	case op.Index == "":
		return errors.New("the Index is empty; want the name of an index or an alias")
	case op.ID == "":
		return errors.New("the ID is empty; want 1 to 512 bytes")
	case len(op.ID) > maxID:
		return fmt.Errorf("the ID has %d bytes; want 1 to 512", len(op.ID))
	case !utf8.ValidString(op.Index) || !utf8.ValidString(op.ID) || !utf8.ValidString(op.Routing):
		return errors.New("the Index, the ID or the Routing is not valid UTF-8")
	case op.Fence > document.Unchanged:
		return fmt.Errorf("the Fence is %v; want NoFence, Newer, NewerOrEqual, Exact or Unchanged", op.Fence)
	case op.Fence == document.Exact && (op.Sequence == "" || op.MarkField == ""):
		return errors.New("the Fence is exact; want a Sequence, and the MarkField in which documents have theirs")
	case op.Fence == document.Unchanged && op.Revision.PrimaryTerm < 1:
		return errors.New("the Fence is unchanged; want the Revision of the document that was read")
	case op.Version != 0 && op.Fence == document.Unchanged:
		return fmt.Errorf("the Version is %d, and the Fence is unchanged, which compares the Revision", op.Version)
	case op.Version < 0:
		return fmt.Errorf("the Version is %d; want 0 or above", op.Version)
	case op.Version != 0 && op.Fence == document.NoFence:
		return fmt.Errorf("the Version is %d, but there is no Fence that compares it", op.Version)
	}
	return nil
}

var errNoObject = errors.New("the Body is not a JSON object")

// object returns a body without the white space around it.
func object(body []byte) []byte {
	for len(body) > 0 && body[0] <= ' ' {
		body = body[1:]
	}
	for len(body) > 0 && body[len(body)-1] <= ' ' {
		body = body[:len(body)-1]
	}
	return body
}

func isObject(b []byte) bool { return len(b) >= 2 && b[0] == '{' && b[len(b)-1] == '}' }

// appendCompact appends a JSON object without white space between tokens, and so
// without newlines.
func appendCompact(dst, object []byte) ([]byte, error) {
	b := bytes.NewBuffer(dst)
	err := json.Compact(b, object)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return dst, fmt.Errorf("%w: invalid at byte %d", errNoObject, syntax.Offset)
	}
	if err != nil {
		return dst, errNoObject
	}
	return b.Bytes(), nil
}

// refuse returns the error of an operation that will never be sent.
func refuse(op *document.Op, err error) *document.Error {
	e := document.NewError(*op, 0, "", "")
	e.Err = err
	return e
}

func permanent(e *document.Error) error { return sluice.Permanent(e) }
