package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/wire"
	"github.com/sluicehq/sluice/item"
)

const stdinName = "-"

// input opens a file to read from, or standard input.
func (c *cli) input(name string) (io.ReadCloser, error) {
	if name == stdinName {
		return io.NopCloser(c.stdin), nil
	}
	return os.Open(name)
}

// readRecords reads the records of every envelope that there is, one after the
// other: a Lambda event, the answer of GetRecords, an array of EventBridge
// Pipes, or single records, as NDJSON has them. A record that cannot be decoded
// has its error; an error of the sequence ends it.
func readRecords(in io.Reader) iter.Seq2[*sluice.Record, error] {
	return func(yield func(*sluice.Record, error) bool) {
		buffered := bufio.NewReader(in)
		if start, _ := buffered.Peek(3); string(start) == "\uFEFF" {
			yield(nil, errors.New("the input begins with a byte order mark (the bytes EF BB BF), which JSON does not allow: save it as UTF-8 without one"))
			return
		}
		dec := json.NewDecoder(buffered)
		for n := 0; ; n++ {
			var raw json.RawMessage
			err := dec.Decode(&raw)
			if errors.Is(err, io.EOF) {
				if n == 0 {
					yield(nil, errors.New("there is no record in the input: want a Lambda event, an answer of GetRecords, an array of records, or a record a line"))
				}
				return
			}
			if err != nil {
				yield(nil, fmt.Errorf("the input is no JSON after byte %d: %w", dec.InputOffset(), err))
				return
			}
			recs, err := envelope(bytes.Clone(raw))
			if err != nil {
				yield(nil, fmt.Errorf("the value that ends at byte %d of the input: %w", dec.InputOffset(), err))
				return
			}
			for i := range recs {
				if !yield(&recs[i], nil) {
					return
				}
			}
		}
	}
}

// envelope returns the records of one JSON value.
func envelope(data []byte) ([]sluice.Record, error) {
	var outer struct{ Records json.RawMessage }
	if data[0] == '{' && json.Unmarshal(data, &outer) == nil && outer.Records == nil && !bytes.Contains(data, []byte(`"Records"`)) {
		return []sluice.Record{*sluice.DecodeRecord(data)}, nil
	}
	recs, err := wire.Event(data)
	if err != nil { // the record that does not name its source
		if answer, other := sluice.DecodeGetRecords(data, sluice.Source{}); other == nil {
			return answer.Records, nil
		}
	}
	return recs, err
}

// whole is a record's text with its stream's ARN. A GetRecords response does not
// name the stream, so a later reader could not distinguish records of different
// tables.
func whole(rec *sluice.Record) []byte {
	raw := bytes.TrimSpace(rec.Raw())
	if rec.StreamARN == "" || sluice.DecodeRecord(raw).StreamARN != "" || len(raw) < 2 || raw[0] != '{' {
		return raw
	}
	arn, _ := json.Marshal(rec.StreamARN) // a string never fails
	out := append([]byte(`{"eventSourceARN":`), arn...)
	if !bytes.Equal(bytes.TrimSpace(raw[1:]), []byte("}")) {
		out = append(out, ',')
	}
	return append(out, raw[1:]...)
}

// keyText is a key for people: pk=1 sk=a.
func keyText(key sluice.Item) string {
	var parts []string
	for name, v := range key.All() {
		parts = append(parts, plain(name)+"="+valueText(v))
	}
	return strings.Join(parts, " ")
}

// valueText is a value for people, in one line.
func valueText(v item.Value) string {
	if text, ok := v.AppendText(nil); ok {
		return plain(string(text))
	}
	return plain(string(v.AppendJSON(nil)))
}
