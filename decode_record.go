package sluice

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/sluicehq/sluice/internal/jsonscan"
	"github.com/sluicehq/sluice/item"
)

// fail sets r.err: r cannot be decoded.
func (r *Record) fail(err error) { r.err = Permanent(fmt.Errorf("undecodable record: %w", err)) }

// record decodes the record at i and returns the offset after it, or -1. It notes
// a bad member and reads on, because a failed record still needs its position.
func (d *decoder) record(rec *Record, i int) int {
	b := d.B
	d.start, d.noted = i, nil
	if i >= len(b) || b[i] != '{' {
		return d.Fail(i, "a record is an object, this is "+jsonscan.LooksLike(b, i))
	}
	var seen member
	shape := &d.outer
	more, i := d.Open(i)
	for nth := 0; more; nth++ {
		id, v := d.member(shape, nth, i)
		if v < 0 {
			i = v
			break
		}
		if seen&id != 0 {
			id = d.duplicate(rec, id, i)
		}
		seen |= id
		var t []byte
		switch id {
		case eventID:
			t, i = d.Text(v, "eventID")
			rec.EventID = d.copy(t)
		case eventName:
			t, i = d.Text(v, "eventName")
			rec.EventName = d.eventName(t)
		case eventSource:
			var source string
			source, i = d.recurring(shape, nth, v, "eventSource")
			switch {
			case source == "" || source == "aws:dynamodb":
			case d.ours || d.single:
				d.note("it comes from elsewhere: " + foreign(source))
			default:
				d.Off = d.start
				d.Err = &EnvelopeError{Offset: d.start, Msg: "its records are " + foreign(source) + "; " + d.wanted()}
				i = -1
			}
		case region:
			rec.Region, i = d.recurring(shape, nth, v, "awsRegion")
		case streamARN:
			rec.StreamARN, i = d.recurring(shape, nth, v, "eventSourceARN")
		case identity:
			i = d.identity(rec, v)
		case change:
			i = d.change(rec, v)
		case duplicate:
			i = d.Skip(v)
		default:
			i = d.unread(shape, nth, v)
		}
		if i < 0 {
			i = d.past(v)
		}
		more, i = d.More(i)
	}
	d.complete(rec, seen)
	if i >= 0 && d.noted != nil {
		d.Off, d.Err = d.start, d.noted
		return -1
	}
	return i
}

// complete fills in derived fields and notes missing members.
func (d *decoder) complete(rec *Record, seen member) {
	if rec.StreamARN == "" {
		rec.StreamARN = d.src.StreamARN
	}
	if rec.StreamARN != d.arn {
		d.arn, d.table = rec.StreamARN, tableOf(rec.StreamARN)
	}
	rec.Table = d.table
	rec.ShardID = d.src.ShardID
	d.ours = d.ours || seen&change != 0
	switch {
	case seen&change == 0:
		d.note(`no member "dynamodb": this is no stream record`)
	case rec.EventName == "":
		d.note("no eventName")
	case rec.Sequence == "" && rec.EventName != Snapshot:
		d.note("no SequenceNumber")
	case rec.Keys.Len() == 0:
		d.note("no Keys")
	}
}

// note keeps the first mistake of a record that stays readable.
func (d *decoder) note(msg string) {
	if d.noted == nil {
		d.noted = errors.New(msg)
	}
}

// duplicate notes a repeated member, whose name stands at i. The first occurrence
// counts. Two positions make both invalid.
func (d *decoder) duplicate(rec *Record, id member, i int) member {
	d.note("duplicate member " + nameAt(d.B, i))
	if id == sequence || id == change {
		rec.Sequence = ""
	}
	return duplicate
}

// past notes the error of the value at v and returns the offset after it, so that
// record can still read the position. It returns -1 if the value has no detectable
// end, or if the whole batch failed.
func (d *decoder) past(v int) int {
	if _, ok := d.Err.(*EnvelopeError); ok {
		return -1
	}
	end := jsonscan.Loose(d.B, v)
	if end >= 0 {
		if d.noted == nil {
			d.noted = d.failure()
		}
		d.Err = nil
	}
	return end
}

// failure returns the error of the current record, with the offset in the record
// if a byte is at fault.
func (d *decoder) failure() error {
	if _, ok := d.Err.(*item.SyntaxError); ok || errors.Is(d.Err, d.noted) {
		return d.Err
	}
	return fmt.Errorf("offset %d: %w", d.Off-d.start, d.Err)
}

func (d *decoder) eventName(t []byte) EventName {
	switch string(t) {
	case string(Modify):
		return Modify
	case string(Insert):
		return Insert
	case string(Remove):
		return Remove
	case string(Snapshot):
		if d.single {
			return Snapshot
		}
	case "":
		return ""
	}
	d.note(fmt.Sprintf("unknown eventName %.40q", t))
	return EventName(t)
}

func (d *decoder) identity(rec *Record, i int) int {
	if d.B[i] == 'n' {
		return d.Skip(i)
	}
	var typ, principal string
	var seen [2]bool
	more, i := d.Open(i)
	for more {
		name, v := d.Name(i)
		if v < 0 {
			return v
		}
		into, nth := &typ, 0
		switch string(name) {
		case "type", "Type":
		case "principalId", "PrincipalId":
			into, nth = &principal, 1
		default:
			more, i = d.More(d.Skip(v))
			continue
		}
		if seen[nth] {
			return d.Fail(i, "duplicate member userIdentity."+string(name))
		}
		seen[nth] = true
		var t []byte
		t, i = d.Text(v, "userIdentity."+string(name))
		*into = string(t)
		more, i = d.More(i)
	}
	if i >= 0 {
		rec.expired = typ == "Service" && principal == "dynamodb.amazonaws.com"
	}
	return i
}

// change decodes the member "dynamodb".
func (d *decoder) change(rec *Record, i int) int {
	b := d.B
	if b[i] == 'n' {
		return d.Skip(i)
	}
	var seen member
	shape := &d.inner
	more, i := d.Open(i)
	for nth := 0; more; nth++ {
		id, v := d.member(shape, nth, i)
		if v < 0 {
			return v
		}
		if seen&id != 0 {
			id = d.duplicate(rec, id, i)
		}
		seen |= id
		switch id {
		case created:
			rec.Created, i = d.time(shape, nth, v)
		case keys:
			i = d.image(&rec.Keys, "dynamodb.Keys", v)
		case newImage:
			i = d.image(&rec.New, "dynamodb.NewImage", v)
		case oldImage:
			i = d.image(&rec.Old, "dynamodb.OldImage", v)
		case sequence:
			var t []byte
			t, i = d.Text(v, "SequenceNumber")
			if rec.Sequence = Sequence(d.copy(t)); t != nil && !rec.Sequence.Valid() {
				d.note(fmt.Sprintf("invalid SequenceNumber %.60q", t))
			}
		case size:
			i = d.size(rec, v)
		case viewType:
			rec.ViewType, i = d.recurring(shape, nth, v, "StreamViewType")
		case duplicate:
			i = d.Skip(v)
		default:
			i = d.unread(shape, nth, v)
		}
		if i < 0 {
			i = d.past(v)
		}
		more, i = d.More(i)
	}
	return i
}

func (d *decoder) size(rec *Record, v int) int {
	end := d.Skip(v)
	if end < 0 || d.B[v] == 'n' {
		return end
	}
	var err error
	if rec.SizeBytes, err = strconv.Atoi(string(d.B[v:end])); err != nil {
		d.note("invalid SizeBytes " + excerpt(d.B[v:end]))
	}
	return end
}

// image parses an attribute map. An error in it does not stop the rest of the
// record.
func (d *decoder) image(into *Item, path string, i int) int {
	if d.B[i] == 'n' {
		return d.Skip(i)
	}
	it, end, err := d.parser.Parse(d.B, i)
	if err == nil {
		*into = it
		return end
	}
	e := err.(*item.SyntaxError)
	d.Off = e.Offset
	e.Offset -= d.start
	e.Path = strings.TrimSuffix(path+"."+e.Path, ".")
	if end = jsonscan.Loose(d.B, i); end < 0 {
		d.Err = e
		return -1
	}
	if d.noted == nil {
		d.noted = e
	}
	return end
}

// tableOf returns the table's name in arn:aws:dynamodb:region:account:table/NAME/stream/label.
func tableOf(arn string) string {
	_, rest, ok := strings.Cut(arn, ":table/")
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, "/")
	return name
}

// nameAt returns the text of the checked name at b[i].
func nameAt(b []byte, i int) string {
	return string(jsonscan.AppendUnquoted(nil, b[i:jsonscan.StringEnd(b, i)]))
}

// copy returns t as a string that shares one allocation with the page's other
// strings.
func (d *decoder) copy(t []byte) string {
	if d.strings.Cap()-d.strings.Len() < len(t) {
		chunk := min(max(2*d.strings.Cap(), 64), 64<<10)
		d.strings.Reset()
		d.strings.Grow(max(chunk, len(t)))
	}
	start := d.strings.Len()
	d.strings.Write(t)
	return d.strings.String()[start:]
}
