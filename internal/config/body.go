package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/message"
	"github.com/sluicehq/sluice/handlers/projection"
	"github.com/sluicehq/sluice/item"
)

// body makes the body of a message.
type body struct {
	make        func(dst []byte, rec *sluice.Record) ([]byte, error)
	reads       item.View // the images that it needs
	wantsRecord bool      // it has attributes of the record, with '$'
}

// parseBody parses the body of a send route.
func parseBody(text string) (body, error) {
	switch text {
	case "", "record":
		return body{make: recordBody}, nil
	case "new":
		return body{make: imageBody(func(rec *sluice.Record) sluice.Item { return rec.New }), reads: item.NewImage}, nil
	case "old":
		return body{make: imageBody(func(rec *sluice.Record) sluice.Item { return rec.Old }), reads: item.OldImage}, nil
	case "keys":
		return body{make: imageBody(func(rec *sluice.Record) sluice.Item { return rec.Keys })}, nil
	}
	if isJSON(text) {
		return parseJSONBody(text)
	}
	t, err := parseText(text)
	return body{make: t.append, reads: t.reads, wantsRecord: t.wantsRecord}, err
}

func imageBody(of func(*sluice.Record) sluice.Item) func([]byte, *sluice.Record) ([]byte, error) {
	return func(dst []byte, rec *sluice.Record) ([]byte, error) {
		it := of(rec)
		if !it.Exists() {
			return dst, fmt.Errorf("the %s record has no such image, which the message's body is", rec.EventName)
		}
		return sendable(it.AppendJSON(dst)), nil
	}
}

// recordBody makes the default body, "record".
func recordBody(dst []byte, rec *sluice.Record) ([]byte, error) {
	var b message.Body
	b.Str("event", string(rec.EventName)).Str("table", rec.Table)
	if rec.Sequence != "" { // records of a backfill have no sequence
		b.Str("sequence", string(rec.Sequence))
	}
	b.JSON("keys", rec.Keys.AppendJSON(nil))
	if rec.New.Exists() {
		b.JSON("new", rec.New.AppendJSON(nil))
	}
	if rec.Old.Exists() {
		b.JSON("old", rec.Old.AppendJSON(nil))
	}
	return append(dst, sendable(b.Bytes())...), nil
}

// sendable escapes the characters that SQS refuses. They occur in JSON strings only.
func sendable(text []byte) []byte {
	if !strings.Contains(string(text), "\uFFFE") && !strings.Contains(string(text), "\uFFFF") {
		return text
	}
	return []byte(refused.Replace(string(text)))
}

var refused = strings.NewReplacer("\uFFFE", `\ufffe`, "\uFFFF", `\uffff`)

// text is a template over an item. Names that begin with '$' read the record.
type text struct {
	projection.Template
	item        []string  // paths of the item
	reads       item.View // the images that it needs by name
	wantsRecord bool
}

func parseText(source string) (text, error) {
	t, err := projection.ParseTemplate(source)
	if err != nil {
		return text{}, err
	}
	made := text{Template: t}
	for _, path := range t.Paths() {
		if err := checkRecordPath(path); err != nil {
			return made, err
		}
		made.wantsRecord = made.wantsRecord || strings.HasPrefix(path, "$")
		switch {
		case strings.HasPrefix(path, "$new."):
			made.reads |= item.NewImage
		case strings.HasPrefix(path, "$old."):
			made.reads |= item.OldImage
		case !strings.HasPrefix(path, "$"):
			made.item = append(made.item, path)
		}
	}
	return made, nil
}

func (t text) append(dst []byte, rec *sluice.Record) ([]byte, error) {
	if err := t.lacks(rec); err != nil {
		return dst, err
	}
	return t.Append(dst, rec.Image(), beside(rec, t.wantsRecord))
}

// lacks is the error of a record without the image that the template reads. That image
// is the new one, or for a REMOVE the old one. Every record has the key.
func (t text) lacks(rec *sluice.Record) error {
	if rec.New.Exists() || rec.EventName == sluice.Remove && rec.Old.Exists() {
		return nil
	}
	for _, path := range t.item {
		if _, ok := rec.Keys.Lookup(path); !ok {
			return fmt.Errorf("{%s} cannot be known: the %s record came without the image; set the table's StreamViewType to NEW_AND_OLD_IMAGES", path, rec.EventName)
		}
	}
	return nil
}

// recordNames are the record's own values, by their names in a template.
const recordNames = "$event, $table, $sequence, $eventId, $created, $new.<path> and $old.<path>"

func checkRecordPath(path string) error {
	name, rest, dotted := strings.Cut(path, ".")
	switch name {
	case "$event", "$table", "$sequence", "$eventId", "$created":
		if !dotted {
			return nil
		}
	case "$new", "$old":
		if rest != "" {
			return nil
		}
	default:
		if !strings.HasPrefix(name, "$") {
			return nil
		}
	}
	return fmt.Errorf("{%s} is nothing of a record; those are %s", path, recordNames)
}

// beside finds values that the image lacks: the keys, and values of the record.
func beside(rec *sluice.Record, wantsRecord bool) sluice.Item {
	if !wantsRecord {
		return rec.Keys
	}
	attrs := []item.Attribute{
		item.String("$event", string(rec.EventName)), item.String("$table", rec.Table),
		item.String("$eventId", rec.EventID), item.Map("$new", rec.New), item.Map("$old", rec.Old),
	}
	if rec.Sequence != "" {
		attrs = append(attrs, item.String("$sequence", string(rec.Sequence)))
	}
	if !rec.Created.IsZero() {
		attrs = append(attrs, item.String("$created", rec.Created.UTC().Format(time.RFC3339)))
	}
	return rec.Keys.With(attrs...)
}

// isJSON reports whether a template is a JSON object, array or string. A text that
// begins with an attribute is none of these.
func isJSON(text string) bool {
	text = strings.Trim(text, " \t\r\n")
	if strings.HasPrefix(text, "[") || stringEnd(text, 0) == len(text) && strings.HasPrefix(text, `"`) {
		return true
	}
	rest, ok := strings.CutPrefix(text, "{")
	rest = strings.TrimLeft(rest, " \t\r\n")
	return ok && rest != "" && (rest[0] == '"' || rest[0] == '}')
}

// piece is a part of a JSON template: literal JSON, then an attribute as JSON, or a
// text with attributes as a string.
type piece struct {
	json  string
	path  string // of an attribute
	text  text
	quote bool // text is set
}

// parseJSONBody parses a JSON template. Within strings an attribute is text, outside of
// strings it is JSON. There, valid JSON has only '"' or '}' after '{', so any other
// character begins an attribute.
func parseJSONBody(source string) (body, error) {
	var b body
	var pieces []piece
	var sample strings.Builder // the template with a constant for each attribute
	last := 0
	add := func(at, end int, template string) (*piece, error) {
		t, err := parseText(template)
		if err != nil {
			return nil, fmt.Errorf("body, byte %d: %w", at, err)
		}
		pieces = append(pieces, piece{json: source[last:at], text: t, quote: true})
		b.wantsRecord, b.reads, last = b.wantsRecord || t.wantsRecord, b.reads|t.reads, end
		return &pieces[len(pieces)-1], nil
	}
	for at := 0; at < len(source); {
		switch c := source[at]; {
		case c == '"':
			end := stringEnd(source, at)
			if end < 0 {
				return b, fmt.Errorf("body, byte %d: a string does not end", at)
			}
			quoted := source[at:end]
			if strings.ContainsRune(quoted, '{') {
				var plain string
				if err := json.Unmarshal([]byte(quoted), &plain); err != nil {
					return b, fmt.Errorf("body, byte %d: %w", at, err)
				}
				if _, err := add(at, end, plain); err != nil {
					return b, err
				}
			}
			sample.WriteString(quoted)
			at = end
		case c == '{' && isAttribute(source[at+1:]):
			end := strings.IndexByte(source[at:], '}')
			if end < 0 {
				return b, fmt.Errorf("body, byte %d: '{' without '}'", at)
			}
			end += at + 1
			p, err := add(at, end, source[at:end])
			if err != nil {
				return b, err
			}
			if path, ok := p.text.Single(); ok {
				p.path, p.quote = path, false
			}
			sample.WriteString("null")
			at = end
		default:
			sample.WriteByte(c)
			at++
		}
	}
	if err := json.Unmarshal([]byte(sample.String()), new(any)); err != nil {
		return b, fmt.Errorf("body: it is neither JSON nor a text: %w", err)
	}
	pieces = append(pieces, piece{json: source[last:]})
	wants := b.wantsRecord
	b.make = func(dst []byte, rec *sluice.Record) ([]byte, error) {
		image, keys := rec.Image(), beside(rec, wants)
		var buf []byte
		for _, p := range pieces {
			dst = append(dst, p.json...)
			if err := p.text.lacks(rec); err != nil {
				return dst, err
			}
			switch {
			case p.quote:
				var err error
				if buf, err = p.text.Append(buf[:0], image, keys); err != nil {
					return dst, err
				}
				dst = item.AppendString(dst, buf)
			case p.path != "":
				if v, ok := lookup(p.path, image, keys); ok {
					dst = v.AppendJSON(dst)
				} else {
					dst = append(dst, "null"...)
				}
			}
		}
		return sendable(dst), nil
	}
	return b, nil
}

// lookup finds an attribute in the image, or else in beside.
func lookup(path string, image, beside sluice.Item) (v item.Value, ok bool) {
	if v, ok = image.Lookup(path); !ok {
		v, ok = beside.Lookup(path)
	}
	return v, ok
}

// isAttribute reports whether an attribute follows a '{' outside of strings.
func isAttribute(rest string) bool {
	return rest != "" && !strings.ContainsRune("\"} \t\r\n", rune(rest[0]))
}

// stringEnd returns the end of the JSON string that begins at index at, or -1.
func stringEnd(s string, at int) int {
	for i := at + 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}

var errEmpty = errors.New("it is empty")
