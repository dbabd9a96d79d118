package opensearch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/document"
)

// maxID is the limit of OpenSearch for an _id, in bytes.
const maxID = 512

// overhead is about what an action line has beside the names.
const overhead = 80

// check returns the body of op on one line, or why op can never be written. One
// such operation could have a whole request refused (F106).
func check(op *document.Op) ([]byte, error) {
	switch {
	case op.Action != document.Put && op.Action != document.Delete:
		return nil, fmt.Errorf("the Action is %v; want Put or Delete", op.Action)
	case op.Index == "":
		return nil, errors.New("the Index is empty; want the name of an index or an alias")
	case op.ID == "":
		return nil, errors.New("the ID is empty; want 1 to 512 bytes")
	case len(op.ID) > maxID:
		return nil, fmt.Errorf("the ID has %d bytes; want 1 to 512", len(op.ID))
	case !utf8.ValidString(op.Index) || !utf8.ValidString(op.ID) || !utf8.ValidString(op.Routing):
		return nil, errors.New("the Index, the ID or the Routing is not valid UTF-8")
	case op.Fence > document.NewerOrEqual:
		return nil, fmt.Errorf("the Fence is %v; want NoFence, Newer or NewerOrEqual", op.Fence)
	case op.Version < 0:
		return nil, fmt.Errorf("the Version is %d; want 0 or above", op.Version)
	case op.Version != 0 && op.Fence == document.NoFence:
		return nil, fmt.Errorf("the Version is %d, but there is no Fence that compares it", op.Version)
	case op.Action == document.Delete:
		return nil, nil
	}
	return oneLine(op.Body)
}

// oneLine returns a JSON object on one line: a bulk request is lines, and a
// newline within a body would begin the next action. It reads only what has
// one; the cluster judges the rest, which cannot spoil its neighbours.
func oneLine(body []byte) ([]byte, error) {
	object := bytes.Trim(body, " \t\r\n")
	if len(object) < 2 || object[0] != '{' || object[len(object)-1] != '}' {
		return nil, errors.New("the Body is not a JSON object")
	}
	if bytes.IndexByte(object, '\n') < 0 {
		return object, nil
	}
	var b bytes.Buffer
	if err := json.Compact(&b, object); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return nil, fmt.Errorf("the Body is not a JSON object: invalid at byte %d", syntax.Offset)
		}
		return nil, errors.New("the Body is not a JSON object")
	}
	return b.Bytes(), nil
}

// refuse is the error of an operation that was not sent and never will be.
func refuse(op *document.Op, err error) *document.Error {
	e := document.NewError(*op, 0, "", "")
	e.Err = err
	return e
}

func permanent(e *document.Error) error { return sluice.Permanent(e) }
