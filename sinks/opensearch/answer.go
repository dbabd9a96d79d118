package opensearch

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/sluicehq/sluice/document"
)

// result is what an answer says of one item.
type result struct {
	status int    // 0: none
	typ    string // of the error
	reason string // likewise
	index  string // that was written, if it is not the one that was asked for
}

// asked returns the i-th operation of a request.
type asked func(i int) *document.Op

// answerReader reads the answer of a bulk request in place. It takes from it
// what Sink needs, without making anything of the rest. Whether "errors" is
// true does not matter: the status of each item does (F089).
type answerReader struct {
	b []byte
	i int

	index string // the last that was not the one asked for
}

var (
	errAnswer = errors.New("the answer is not one of a bulk request")
	errOrder  = errors.New("the answer does not fit the request: its items are others, or in another order")
)

// parseAnswer fills results, one for each of the request's operations. The
// answer must have an item for each, in order, with its action and id; an
// error says that nothing of it is to be believed (F108).
func parseAnswer(b []byte, op asked, results []result) error {
	r := answerReader{b: b}
	found := false
	err := r.object(func(name []byte) error {
		if string(name) != "items" {
			return r.skip()
		}
		found = true
		return r.items(op, results)
	})
	switch {
	case err != nil:
		return err
	case !found:
		return fmt.Errorf("%w: it has no items", errAnswer)
	case r.space() != 0:
		return errAnswer
	}
	return swapped(op, results)
}

// swapped reports, as errOrder, two documents with one id that each came out
// under the other's index. Another index than the one asked for is none by
// itself: it is what an alias stands for.
func swapped(op asked, results []result) error {
	var names []string // that were asked for
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
	n := 0
	err := r.array(func() error {
		if n == len(results) {
			return errOrder
		}
		o, res := op(n), &results[n]
		n++
		*res = result{}
		seen := false
		err := r.object(func(name []byte) error {
			if seen || string(name) != o.Action.String() {
				return errOrder
			}
			seen = true
			return r.item(o, res)
		})
		if err == nil && !seen {
			err = errOrder
		}
		return err
	})
	if err == nil && n < len(results) {
		err = errOrder
	}
	return err
}

func (r *answerReader) item(op *document.Op, res *result) error {
	byID := false
	err := r.object(func(name []byte) error {
		switch string(name) {
		case "_id":
			if !r.is(op.ID) {
				return errOrder
			}
			byID = true
			return nil
		case "_index":
			if r.is(op.Index) {
				return nil
			}
			if r.index == "" || !r.is(r.index) {
				var err error
				if r.index, err = r.text(); err != nil {
					return err
				}
			}
			res.index = r.index
			return nil
		case "status":
			var err error
			res.status, err = r.number()
			return err
		case "error":
			return r.failure(res)
		}
		return r.skip()
	})
	if err == nil && !byID {
		err = errOrder
	}
	return err
}

// failure reads an item's error: an object, or a text of older versions.
func (r *answerReader) failure(res *result) (err error) {
	switch r.space() {
	case '"':
		res.reason, err = r.text()
		return err
	case '{':
	default:
		return r.skip()
	}
	return r.object(func(name []byte) (err error) {
		switch {
		case r.space() != '"':
			return r.skip()
		case string(name) == "type":
			res.typ, err = r.text()
			return err
		case string(name) == "reason":
			res.reason, err = r.text()
			return err
		}
		return r.skip()
	})
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

// object reads an object. member is called with each name, which is not
// unescaped, and must read the value.
func (r *answerReader) object(member func(name []byte) error) error {
	if err := r.expect('{'); err != nil {
		return err
	}
	if r.space() == '}' {
		r.i++
		return nil
	}
	for {
		if r.space() != '"' {
			return errAnswer
		}
		name, err := r.quoted()
		if err != nil {
			return err
		}
		if err := r.expect(':'); err != nil {
			return err
		}
		if err := member(name[1 : len(name)-1]); err != nil {
			return err
		}
		switch r.space() {
		case ',':
			r.i++
		case '}':
			r.i++
			return nil
		default:
			return errAnswer
		}
	}
}

// array reads an array; element is called for each and must read it.
func (r *answerReader) array(element func() error) error {
	if err := r.expect('['); err != nil {
		return err
	}
	if r.space() == ']' {
		r.i++
		return nil
	}
	for {
		if err := element(); err != nil {
			return err
		}
		switch r.space() {
		case ',':
			r.i++
		case ']':
			r.i++
			return nil
		default:
			return errAnswer
		}
	}
}

// quoted steps over a string and returns it with its quotes.
func (r *answerReader) quoted() ([]byte, error) {
	from := r.i
	for i := r.i + 1; i < len(r.b); i++ {
		switch r.b[i] {
		case '\\':
			i++
		case '"':
			r.i = i + 1
			return r.b[from:r.i], nil
		}
	}
	return nil, errAnswer
}

// is steps over the string if it is s, and reports whether it is.
func (r *answerReader) is(s string) bool {
	if r.space() != '"' {
		return false
	}
	// Most need no unescaping.
	end := r.i + 1 + len(s)
	if end < len(r.b) && r.b[end] == '"' && string(r.b[r.i+1:end]) == s && !escaped(s) {
		r.i = end + 1
		return true
	}
	at := r.i
	if text, err := r.text(); err == nil && text == s {
		return true
	}
	r.i = at
	return false
}

// escaped reports whether s would have escapes in JSON, or be one.
func escaped(s string) bool {
	for i := range len(s) {
		if s[i] == '\\' || s[i] == '"' || s[i] < 0x20 {
			return true
		}
	}
	return false
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
	r.space()
	from, n := r.i, 0
	for r.i < len(r.b) && r.b[r.i]-'0' <= 9 && n < 1_000_000 {
		n = n*10 + int(r.b[r.i]-'0')
		r.i++
	}
	if r.i == from {
		return 0, errAnswer
	}
	return n, nil
}

// skip steps over a value, judging by quotes and brackets alone.
func (r *answerReader) skip() error {
	r.space()
	depth, from := 0, r.i
	for r.i < len(r.b) {
		switch c := r.b[r.i]; c {
		case '"':
			if _, err := r.quoted(); err != nil {
				return err
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return r.skipped(from)
			}
			depth--
		case ',':
			if depth == 0 {
				return r.skipped(from)
			}
		}
		r.i++
	}
	return errAnswer
}

func (r *answerReader) skipped(from int) error {
	if r.i == from {
		return errAnswer
	}
	return nil
}
