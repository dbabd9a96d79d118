package opensearch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

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
	b []byte
	i int

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
	r := answerReader{b: b}
	found := false
	if err := r.expect('{'); err != nil {
		return err
	}
	for n := 0; ; n++ {
		name, err := r.member(n)
		switch {
		case err != nil:
		case name == nil:
			if !found {
				return fmt.Errorf("%w: it has no items", errAnswer)
			}
			if r.space(); r.i < len(r.b) {
				return errAnswer
			}
			return swapped(op, results)
		case string(name) == "items":
			found = true
			err = r.items(op, results)
		default:
			err = r.skip()
		}
		if err != nil {
			return err
		}
	}
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

func (r *answerReader) items(op asked, results []result) error {
	if err := r.expect('['); err != nil {
		return err
	}
	for n := 0; ; n++ {
		more, err := r.element(n)
		switch {
		case err != nil:
			return err
		case more != (n < len(results)):
			return errOrder
		case !more:
			return nil
		}
		results[n] = result{}
		if err := r.item(op(n), &results[n]); err != nil {
			return err
		}
	}
}

// item reads {"index":{…}}.
func (r *answerReader) item(op *document.Op, res *result) error {
	if err := r.expect('{'); err != nil {
		return err
	}
	action, err := r.member(0)
	if err != nil {
		return err
	}
	if action == nil || string(action) != op.Action.String() {
		return errOrder
	}
	if err := r.outcome(op, res); err != nil {
		return err
	}
	if more, err := r.member(1); more != nil || err != nil {
		return errOrder
	}
	return nil
}

func (r *answerReader) outcome(op *document.Op, res *result) error {
	if err := r.expect('{'); err != nil {
		return err
	}
	byID := false
	for n := 0; ; n++ {
		name, err := r.member(n)
		if err != nil {
			return err
		}
		if name == nil {
			break
		}
		switch string(name) {
		case "_id":
			if byID = r.is(op.ID); !byID {
				return errOrder
			}
		case "_index":
			err = r.indexName(op, res)
		case "status":
			res.status, err = r.number()
		case "_seq_no":
			res.revision.SeqNo, err = r.whole()
		case "_primary_term":
			res.revision.PrimaryTerm, err = r.whole()
		case "error":
			err = r.failure(res)
		default:
			err = r.skip()
		}
		if err != nil {
			return err
		}
	}
	if !byID {
		return errOrder
	}
	return nil
}

func (r *answerReader) indexName(op *document.Op, res *result) (err error) {
	if r.is(op.Index) {
		return nil
	}
	if r.index == "" || !r.is(r.index) {
		if r.index, err = r.text(); err != nil {
			return err
		}
	}
	res.index = r.index
	return nil
}

// failure reads an item's error: an object, or text in older versions.
func (r *answerReader) failure(res *result) (err error) {
	switch r.space() {
	case '"':
		res.reason, err = r.text()
		return err
	case '{':
		r.i++
	default:
		return r.skip()
	}
	for n := 0; ; n++ {
		name, err := r.member(n)
		switch {
		case err != nil || name == nil:
			return err
		case string(name) == "type" && r.space() == '"':
			res.typ, err = r.text()
		case string(name) == "reason" && r.space() == '"':
			res.reason, err = r.text()
		default:
			err = r.skip()
		}
		if err != nil {
			return err
		}
	}
}

// space steps over white space and returns the next byte; 0 at the end.
func (r *answerReader) space() byte {
	for r.i < len(r.b) {
		switch c := r.b[r.i]; c {
		case ' ', '\n', '\t', '\r':
			r.i++
		default:
			return c
		}
	}
	return 0
}

func (r *answerReader) expect(c byte) error {
	if r.space() != c {
		return errAnswer
	}
	r.i++
	return nil
}

// member steps to the n-th member of an object whose brace has been read, and
// returns its name without unescaping; nil after the last. Read its value before
// the next member.
func (r *answerReader) member(n int) (name []byte, err error) {
	c := r.space()
	if c == '}' {
		r.i++
		return nil, nil
	}
	if n > 0 {
		if c != ',' {
			return nil, errAnswer
		}
		r.i++
		c = r.space()
	}
	if c != '"' {
		return nil, errAnswer
	}
	if name, err = r.quoted(); err != nil {
		return nil, err
	}
	return name[1 : len(name)-1], r.expect(':')
}

// element steps to the n-th element of an array whose bracket has been read, and
// reports whether it exists.
func (r *answerReader) element(n int) (bool, error) {
	switch c := r.space(); {
	case c == ']':
		r.i++
		return false, nil
	case n == 0:
		return true, nil
	case c != ',':
		return false, errAnswer
	}
	r.i++
	if r.space() == ']' {
		return false, errAnswer
	}
	return true, nil
}

// quoted steps over a string and returns it with its quotes.
func (r *answerReader) quoted() ([]byte, error) {
	from := r.i
	if err := r.skip(); err != nil {
		return nil, err
	}
	return r.b[from:r.i], nil
}

// is steps over the string if it equals s, and reports whether it does.
func (r *answerReader) is(s string) bool {
	if r.space() != '"' {
		return false
	}
	at, end := r.i, r.i+1+len(s)
	if end < len(r.b) && r.b[end] == '"' && string(r.b[at+1:end]) == s && plain(s) {
		r.i = end + 1
		return true
	}
	quoted, err := r.quoted()
	if err == nil && bytes.IndexByte(quoted, '\\') >= 0 {
		r.i = at
		if text, err := r.text(); err == nil && text == s {
			return true
		}
	}
	r.i = at
	return false
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

// text reads a string.
func (r *answerReader) text() (string, error) {
	if r.space() != '"' {
		return "", errAnswer
	}
	quoted, err := r.quoted()
	if err != nil {
		return "", err
	}
	var s string
	if json.Unmarshal(quoted, &s) != nil {
		return "", errAnswer
	}
	return s, nil
}

func (r *answerReader) number() (int, error) {
	negative := r.space() == '-'
	n, err := r.whole()
	if n > 1_000_000 || negative {
		return 0, errAnswer
	}
	return int(n), err
}

// whole reads an integer of 0 or more. Other numbers, such as the seq_no -2 of an
// item that was not written, are errors or skipped.
func (r *answerReader) whole() (int64, error) {
	if r.space() == '-' {
		return 0, r.skip()
	}
	from, n := r.i, int64(0)
	for r.i < len(r.b) && r.b[r.i]-'0' <= 9 && n < 1e17 {
		n = n*10 + int64(r.b[r.i]-'0')
		r.i++
	}
	if r.i == from || r.b[from] == '0' && r.i > from+1 {
		return 0, errAnswer
	}
	return n, nil
}

// skip steps over an unused value. It must still be JSON: otherwise the response
// is not the cluster's, or incomplete, and its statuses do not count. Text is
// accepted like in encoding/json: a reason may be cut within a character.
func (r *answerReader) skip() error {
	r.space()
	end, wrong := jsonscan.Value(r.b, r.i)
	if wrong != "" {
		if end = jsonscan.Loose(r.b, r.i); end < 0 || !json.Valid(r.b[r.i:end]) {
			return errAnswer
		}
	}
	r.i = end
	return nil
}
