package sluice

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/sluicehq/sluice/internal/jsonscan"
	"github.com/sluicehq/sluice/item"
)

// fail marks r as one that cannot be decoded.
func (r *Record) fail(err error) { r.err = Permanent(fmt.Errorf("undecodable record: %w", err)) }

// The members that are read, as bits of a set.
const (
	hasEventID = 1 << iota
	hasEventName
	hasEventSource
	hasRegion
	hasARN
	hasIdentity
	hasChange
	hasCreated
	hasKeys
	hasNew
	hasOld
	hasSequence
	hasSize
	hasViewType
)

// record decodes the record at i and returns the offset after it, or -1. On a
// failure it leaves what it has read in rec: what is wrong with a member is
// noted, and reading goes on for the position of the record.
func (d *decoder) record(rec *Record, i int) int {
	b := d.b
	d.start, d.noted = i, nil
	if i >= len(b) || b[i] != '{' {
		return d.fail(i, "a record is an object, this is "+looksLike(b, i))
	}
	seen := 0
	for more, i := d.open(i); ; more, i = d.more(i) {
		if !more {
			d.complete(rec, seen)
			if i >= 0 && d.noted != nil {
				d.off, d.err = d.start, d.noted
				return -1
			}
			return i
		}
		name, v := d.name(i)
		if v < 0 {
			i = v
			continue
		}
		was := seen
		var t []byte
		switch string(name) {
		case "eventID":
			seen |= hasEventID
			t, i = d.text(v, "eventID")
			rec.EventID = d.copy(t)
		case "eventName":
			seen |= hasEventName
			t, i = d.text(v, "eventName")
			rec.EventName = d.eventName(t)
		case "eventSource", "EventSource":
			seen |= hasEventSource
			if t, i = d.text(v, "eventSource"); t != nil && string(t) != "aws:dynamodb" {
				d.off = d.start
				d.err = &EnvelopeError{Offset: d.start, Msg: "its records are " + foreign(string(t)) + "; " + d.wanted()}
				i = -1
			}
		case "awsRegion":
			seen |= hasRegion
			t, i = d.text(v, "awsRegion")
			rec.Region = intern(&d.region, t)
		case "eventSourceARN":
			seen |= hasARN
			t, i = d.text(v, "eventSourceARN")
			if rec.StreamARN = d.arn; string(t) != d.arn {
				rec.StreamARN = string(t)
			}
		case "userIdentity":
			seen |= hasIdentity
			i = d.identity(rec, v)
		case "dynamodb":
			seen |= hasChange
			i = d.change(rec, v)
		default:
			i = d.skip(v)
			continue
		}
		if was == seen && i >= 0 {
			i = d.fail(v, "duplicate member "+string(name))
		}
	}
}

// complete fills in what the record does not say itself and notes what it
// lacks.
func (d *decoder) complete(rec *Record, seen int) {
	if rec.StreamARN == "" {
		rec.StreamARN = d.src.StreamARN
	}
	if rec.StreamARN != d.arn {
		d.arn, d.table = rec.StreamARN, tableOf(rec.StreamARN)
	}
	rec.Table = d.table
	rec.ShardID = d.src.ShardID
	switch {
	case seen&hasChange == 0:
		d.note(`no member "dynamodb": this is no stream record`)
	case rec.EventName == "":
		d.note("no eventName")
	case rec.Sequence == "" && rec.EventName != Snapshot:
		d.note("no SequenceNumber")
	case rec.Keys.Len() == 0:
		d.note("no Keys")
	}
}

// note keeps the first thing that is wrong with a record that can be read on.
func (d *decoder) note(msg string) {
	if d.noted == nil {
		d.noted = errors.New(msg)
	}
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
	if d.b[i] == 'n' {
		return d.skip(i)
	}
	var u UserIdentity
	for more, i := d.open(i); ; more, i = d.more(i) {
		if !more {
			if i >= 0 {
				rec.UserIdentity = &u
			}
			return i
		}
		name, v := d.name(i)
		if v < 0 {
			i = v
			continue
		}
		var t []byte
		switch string(name) {
		case "type", "Type":
			t, i = d.text(v, "userIdentity.type")
			u.Type = string(t)
		case "principalId", "PrincipalId":
			t, i = d.text(v, "userIdentity.principalId")
			u.PrincipalID = string(t)
		default:
			i = d.skip(v)
		}
	}
}

// change decodes the member "dynamodb".
func (d *decoder) change(rec *Record, i int) int {
	if d.b[i] == 'n' {
		return d.skip(i)
	}
	seen := 0
	for more, i := d.open(i); ; more, i = d.more(i) {
		if !more {
			return i
		}
		name, v := d.name(i)
		if v < 0 {
			i = v
			continue
		}
		was := seen
		var t []byte
		switch string(name) {
		case "ApproximateCreationDateTime":
			seen |= hasCreated
			if i = d.skip(v); i >= 0 {
				var ok bool
				if rec.Created, ok = parseTime(d.b[v:i]); !ok {
					d.note(fmt.Sprintf("ApproximateCreationDateTime %.60s is not a time", d.b[v:i]))
				}
			}
		case "Keys":
			seen |= hasKeys
			i = d.image(&rec.Keys, "dynamodb.Keys", v)
		case "NewImage":
			seen |= hasNew
			i = d.image(&rec.New, "dynamodb.NewImage", v)
		case "OldImage":
			seen |= hasOld
			i = d.image(&rec.Old, "dynamodb.OldImage", v)
		case "SequenceNumber":
			seen |= hasSequence
			t, i = d.text(v, "SequenceNumber")
			if rec.Sequence = Sequence(d.copy(t)); t != nil && !rec.Sequence.Valid() {
				d.note(fmt.Sprintf("invalid SequenceNumber %.60q", t))
			}
		case "SizeBytes":
			seen |= hasSize
			if i = d.skip(v); i >= 0 && d.b[v] != 'n' {
				var err error
				if rec.SizeBytes, err = strconv.Atoi(string(d.b[v:i])); err != nil {
					d.note(fmt.Sprintf("invalid SizeBytes %.40s", d.b[v:i]))
				}
			}
		case "StreamViewType":
			seen |= hasViewType
			t, i = d.text(v, "StreamViewType")
			rec.ViewType = intern(&d.viewType, t)
		default:
			i = d.skip(v)
			continue
		}
		if was == seen && i >= 0 {
			i = d.fail(v, "duplicate member "+string(name))
		}
	}
}

// image parses an attribute map. What is wrong in it does not hinder reading
// the rest of the record.
func (d *decoder) image(into *Item, path string, i int) int {
	if d.b[i] == 'n' {
		return d.skip(i)
	}
	it, end, err := d.parser.Parse(d.b, i)
	if err == nil {
		*into = it
		return end
	}
	e := err.(*item.SyntaxError)
	d.off = e.Offset
	e.Offset -= d.start
	e.Path = strings.TrimSuffix(path+"."+e.Path, ".")
	if end = jsonscan.Loose(d.b, i); end < 0 {
		d.err = e
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
