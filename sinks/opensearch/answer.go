package opensearch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/jsonscan"
)

// result is the cluster's result for one item.
type result struct {
	said
	index    string // the index written, if it differs from the requested one
	revision document.Revision
}

// asked returns the i-th operation of a request.
type asked func(i int) *document.Op

// answerReader reads a bulk response in place. It reads only what Sink needs. It
// ignores "errors", because the status of each item decides.
type answerReader struct {
	jsonscan.Reader

	index string // last index that differed from the requested one
}

var (
	errAnswer = errors.New("the answer is not one of a bulk request")
	errOrder  = errors.New("the answer does not fit the request: its items are others, or in another order")
)

// parseAnswer fills results, one per operation of the request. The response must
// have an item for each, in order, with its action and id. After an error, no
// result counts.
func parseAnswer(b []byte, op asked, results []result) error {
	r := answerReader{Reader: jsonscan.Reader{B: b}}
	end, found := r.answer(op, results)
	switch {
	case errors.Is(r.Err, errOrder):
		return errOrder
	case end < 0 || jsonscan.Space(b, end) < len(b):
		return errAnswer
	case !found:
		return fmt.Errorf("%w: it has no items", errAnswer)
	}
	return swapped(op, results)
}

// swapped returns errOrder if two documents with one id came back under each
// other's index. A different index alone is not an error: an alias resolves to
// one.
func swapped(op asked, results []result) error {
	var names []string // requested names
	for i := range results {
		if name := op(i).Index; len(names) == 0 || names[len(names)-1] != name && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) < 2 {
		return nil
	}
	for i := range results {
		if results[i].index == "" || !slices.Contains(names, results[i].index) {
			continue
		}
		for j := i + 1; j < len(results); j++ {
			if results[i].index == op(j).Index && results[j].index == op(i).Index && op(i).ID == op(j).ID {
				return errOrder
			}
		}
	}
	return nil
}

func (r *answerReader) answer(op asked, results []result) (end int, found bool) {
	more, i := r.Open(jsonscan.Space(r.B, 0))
	for more {
		name, v := r.Name(i)
		switch {
		case v < 0:
			return v, found
		case string(name) == "items":
			i, found = r.items(v, op, results), true
		default:
			i = r.skip(v)
		}
		more, i = r.More(i)
	}
	return i, found
}

// disorder notes that the response does not fit the request.
func (r *answerReader) disorder() int {
	r.Err = errOrder
	return -1
}

func (r *answerReader) items(i int, op asked, results []result) int {
	b := r.B
	if b[i] != '[' {
		return r.Fail(i, "items is not an array")
	}
	i++
	for n := 0; ; n++ {
		if i = jsonscan.Space(b, i); i >= len(b) {
			return r.Fail(i, "unexpected end")
		}
		more := b[i] != ']'
		if more && n > 0 {
			if b[i] != ',' {
				return r.Fail(i, "missing comma")
			}
			if i = jsonscan.Space(b, i+1); i < len(b) && b[i] == ']' {
				return r.Fail(i, "an item is expected")
			}
		}
		switch {
		case more != (n < len(results)):
			return r.disorder()
		case !more:
			return i + 1
		}
		results[n] = result{}
		if i = r.item(i, op(n), &results[n]); i < 0 {
			return i
		}
	}
}

// item reads {"index":{…}}.
func (r *answerReader) item(i int, op *document.Op, res *result) int {
	more, i := r.Open(i)
	if i < 0 {
		return i
	}
	if !more {
		return r.disorder()
	}
	action, v := r.Name(i)
	if v < 0 {
		return v
	}
	if string(action) != op.Action.String() {
		return r.disorder()
	}
	if more, i = r.More(r.outcome(v, op, res)); more {
		return r.disorder()
	}
	return i
}

func (r *answerReader) outcome(i int, op *document.Op, res *result) int {
	byID := false
	more, i := r.Open(i)
	for more {
		name, v := r.Name(i)
		if v < 0 {
			return v
		}
		switch string(name) {
		case "_id":
			if i, byID = r.is(v, op.ID); !byID {
				return r.disorder()
			}
		case "_index":
			i = r.indexName(v, op, res)
		case "status":
			var status int64
			if status, i = r.whole(v); r.B[v] == '-' || status > 1_000_000 {
				return r.Fail(v, "status")
			}
			res.status = int(status)
		case "_seq_no":
			res.revision.SeqNo, i = r.whole(v)
		case "_primary_term":
			res.revision.PrimaryTerm, i = r.whole(v)
		case "error":
			i = r.failure(v, res)
		default:
			i = r.skip(v)
		}
		more, i = r.More(i)
	}
	if i >= 0 && !byID {
		return r.disorder()
	}
	return i
}

func (r *answerReader) indexName(v int, op *document.Op, res *result) int {
	end, ok := r.is(v, op.Index)
	if ok {
		return end
	}
	if end, ok = r.is(v, r.index); r.index == "" || !ok {
		r.index, end = r.text(v)
	}
	res.index = r.index
	return end
}

// failure reads an item's error: an object, or text in older versions.
func (r *answerReader) failure(v int, res *result) int {
	switch r.B[v] {
	case '"':
		res.reason, v = r.text(v)
		return v
	case '{':
	default:
		return r.skip(v)
	}
	more, i := r.Open(v)
	for more {
		name, v := r.Name(i)
		switch {
		case v < 0:
			return v
		case string(name) == "type" && r.B[v] == '"':
			res.typ, i = r.text(v)
		case string(name) == "reason" && r.B[v] == '"':
			res.reason, i = r.text(v)
		default:
			i = r.skip(v)
		}
		more, i = r.More(i)
	}
	return i
}

// is reports whether the value at v is the string s, and returns the offset after it.
func (r *answerReader) is(v int, s string) (end int, ok bool) {
	b := r.B
	if end = v + 1 + len(s); end < len(b) && b[v] == '"' && b[end] == '"' && string(b[v+1:end]) == s && plain(s) {
		return end + 1, true
	}
	if end = r.skip(v); end < 0 || bytes.IndexByte(b[v:end], '\\') < 0 {
		return end, false
	}
	text, end := r.text(v)
	return end, end >= 0 && text == s
}

// plain reports whether s needs no escapes in JSON.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// text reads the string at v.
func (r *answerReader) text(v int) (s string, end int) {
	if end = r.skip(v); end < 0 || r.B[v] != '"' || json.Unmarshal(r.B[v:end], &s) != nil {
		return "", r.Fail(v, "not a string")
	}
	return s, end
}

// whole reads the integer at v. A negative one, such as the seq_no -2 of an item that
// was not written, counts as 0.
func (r *answerReader) whole(v int) (n int64, end int) {
	if end = r.skip(v); end < 0 || r.B[v] == '-' {
		return 0, end
	}
	n, err := strconv.ParseInt(string(r.B[v:end]), 10, 64)
	if err != nil {
		return 0, r.Fail(v, "not an integer")
	}
	return n, end
}

// skip checks the value at v and returns the offset after it. An unused value must
// still be JSON: otherwise the response is not the cluster's, or incomplete, and its
// statuses do not count. Text is accepted like in encoding/json: a reason may be cut
// within a character.
func (r *answerReader) skip(v int) int {
	end, wrong := jsonscan.Value(r.B, v)
	if wrong == "" {
		return end
	}
	if end = jsonscan.Loose(r.B, v); end < 0 || !json.Valid(r.B[v:end]) {
		return r.Fail(v, wrong)
	}
	return end
}
