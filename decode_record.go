package sluice

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/sluicehq/sluice/internal/jsonscan"
	"github.com/sluicehq/sluice/item"
)

type itemParser = item.Parser

// fail marks r as one that cannot be decoded.
func (r *Record) fail(err error) { r.err = Permanent(fmt.Errorf("undecodable record: %w", err)) }

// record decodes the record at i and returns the offset after it. On a failure
// it leaves what it has read in rec.
func (d *decoder) record(rec *Record, i int) int {
	b := d.b
	start := i
	if i >= len(b) || b[i] != '{' {
		return d.fail(i, "a record is an object, this is "+looksLike(b, i))
	}
	var first error // the first failure; reading goes on for the position
	note := func(err error) {
		if first == nil {
			first = err
		}
	}
	end := d.members(i, func(name string, v int) int {
		switch name {
		case "eventID":
			return d.str(v, name, &rec.EventID)
		case "eventName":
			var s string
			v = d.str(v, name, &s)
			switch rec.EventName = EventName(s); rec.EventName {
			case Insert, Modify, Remove:
			case Snapshot:
				if !d.single {
					note(errors.New("eventName SNAPSHOT in a stream"))
				}
			default:
				note(fmt.Errorf("unknown eventName %.40q", s))
			}
			return v
		case "eventSource", "EventSource":
			var s string
			if v = d.str(v, name, &s); s != "" && s != "aws:dynamodb" && !d.failed() {
				e := &EnvelopeError{Offset: start, Msg: "its records are " + foreign(s) + "; " + d.wanted()}
				d.off, d.err = start, e
			}
			return v
		case "awsRegion":
			return d.str(v, name, &rec.Region)
		case "eventSourceARN":
			return d.str(v, name, &rec.StreamARN)
		case "userIdentity":
			if b[v] == 'n' {
				break
			}
			var u UserIdentity
			v = d.members(v, func(name string, v int) int {
				switch name {
				case "type", "Type":
					return d.str(v, name, &u.Type)
				case "principalId", "PrincipalId":
					return d.str(v, name, &u.PrincipalID)
				}
				return d.skip(v)
			})
			if !d.failed() {
				rec.UserIdentity = &u
			}
			return v
		case "dynamodb":
			if b[v] == 'n' {
				break
			}
			return d.members(v, func(name string, v int) int { return d.change(rec, start, name, v, note) })
		default:
			return d.skip(v)
		}
		return d.skip(v) // null
	})
	if rec.StreamARN == "" {
		rec.StreamARN = d.src.StreamARN
	}
	rec.ShardID = d.src.ShardID
	rec.Table = tableOf(rec.StreamARN)
	switch {
	case d.failed():
		return end
	case first != nil:
	case rec.EventName == "":
		note(errors.New("no eventName"))
	case rec.Sequence == "" && rec.EventName != Snapshot:
		note(errors.New("no SequenceNumber"))
	case rec.Keys.Len() == 0:
		note(errors.New("no Keys"))
	}
	if first != nil {
		d.off, d.err = start, first
	}
	return end
}

// change decodes one member of "dynamodb".
func (d *decoder) change(rec *Record, start int, name string, v int, note func(error)) int {
	b := d.b
	image := func(it *Item) int {
		if b[v] == 'n' {
			return d.skip(v)
		}
		got, end, err := d.parser.Parse(b, v)
		if err != nil {
			e := err.(*item.SyntaxError)
			d.off = e.Offset
			e.Offset -= start
			e.Path = strings.TrimSuffix("dynamodb."+name+"."+e.Path, ".")
			note(e)
			if end = jsonscan.Loose(b, v); end < 0 {
				d.err = e
				return v
			}
			return end
		}
		*it = got
		return end
	}
	switch name {
	case "ApproximateCreationDateTime":
		end := d.skip(v)
		if !d.failed() {
			t, err := parseTime(b[v:end])
			if err != nil {
				note(err)
			}
			rec.Created = t
		}
		return end
	case "Keys":
		return image(&rec.Keys)
	case "NewImage":
		return image(&rec.New)
	case "OldImage":
		return image(&rec.Old)
	case "SequenceNumber":
		var s string
		v = d.str(v, name, &s)
		if !d.failed() {
			if rec.Sequence = Sequence(s); s != "" && !rec.Sequence.Valid() {
				note(fmt.Errorf("invalid SequenceNumber %.60q", s))
			}
		}
		return v
	case "SizeBytes":
		end := d.skip(v)
		if !d.failed() && b[v] != 'n' {
			n, err := strconv.Atoi(string(b[v:end]))
			if err != nil {
				note(fmt.Errorf("invalid SizeBytes %.40s", b[v:end]))
			}
			rec.SizeBytes = n
		}
		return end
	case "StreamViewType":
		return d.str(v, name, &rec.ViewType)
	}
	return d.skip(v)
}

// members calls f with the name and the offset of the value of each member of
// the object at i; f returns the offset after the value.
func (d *decoder) members(i int, f func(name string, v int) int) int {
	b := d.b
	if i >= len(b) || b[i] != '{' {
		return d.fail(i, "an object is expected")
	}
	seen := map[string]bool{}
	i = jsonscan.Space(b, i+1)
	for first := true; i >= len(b) || b[i] != '}'; first = false {
		if !first {
			if i >= len(b) || b[i] != ',' {
				return d.fail(i, "missing comma")
			}
			i = jsonscan.Space(b, i+1)
		}
		v, msg := jsonscan.Name(b, i)
		if msg != "" {
			return d.fail(v, msg)
		}
		if v >= len(b) {
			return d.fail(v, "unexpected end")
		}
		name := string(jsonscan.AppendUnquoted(nil, b[i:nameEnd(b, i)]))
		if seen[name] {
			return d.fail(i, "duplicate member "+name)
		}
		seen[name] = true
		if i = f(name, v); d.failed() {
			return i
		}
		i = jsonscan.Space(b, i)
	}
	return i + 1
}

// str reads the string or null at v.
func (d *decoder) str(v int, name string, into *string) int {
	if d.b[v] != '"' {
		if d.b[v] != 'n' {
			return d.fail(v, name+" is not a string")
		}
		return d.skip(v)
	}
	end, _, msg := jsonscan.String(d.b, v)
	if msg != "" {
		return d.fail(end, name+": "+msg)
	}
	*into = string(jsonscan.AppendUnquoted(nil, d.b[v:end]))
	return end
}

func (d *decoder) skip(v int) int {
	end, msg := jsonscan.Value(d.b, v)
	if msg != "" {
		return d.fail(end, msg)
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
