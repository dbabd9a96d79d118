package sluice

import "time"

// member is a member that the decoder reads, as a bit of a set. 0 is any other
// member.
type member uint32

const (
	eventID member = 1 << iota
	eventName
	eventSource
	region
	streamARN
	identity
	change
	created
	keys
	newImage
	oldImage
	sequence
	size
	viewType

	duplicate // a member of the record seen twice
)

var members = map[string]member{
	"eventID":                     eventID,
	"eventName":                   eventName,
	"eventSource":                 eventSource,
	"EventSource":                 eventSource,
	"awsRegion":                   region,
	"eventSourceARN":              streamARN,
	"userIdentity":                identity,
	"dynamodb":                    change,
	"ApproximateCreationDateTime": created,
	"Keys":                        keys,
	"NewImage":                    newImage,
	"OldImage":                    oldImage,
	"SequenceNumber":              sequence,
	"SizeBytes":                   size,
	"StreamViewType":              viewType,
}

// shape remembers the members of the last record. The next record nearly always
// has the same members in the same order. Bytes equal to checked bytes need no
// second check.
type shape [12]struct {
	name  []byte // from its quote up to the value; nil when not known
	value []byte // if likely to recur; else nil
	id    member

	text string    // decoded value
	time time.Time // decoded value of created
}

// member checks the name of the nth member, at i. It returns the member and the
// offset of its value, or -1.
func (d *decoder) member(s *shape, nth, i int) (id member, v int) {
	b := d.B
	if nth < len(s) {
		if n := len(s[nth].name); n > 0 && len(b)-i > n && string(b[i:i+n]) == string(s[nth].name) && b[i+n] > ' ' {
			return s[nth].id, i + n
		}
	}
	name, v := d.Name(i)
	if v < 0 {
		return 0, v
	}
	id = members[string(name)]
	if nth < len(s) {
		s[nth].name, s[nth].value, s[nth].id = b[i:v], nil, id
	}
	return id, v
}

// again returns the offset after the value at v if it equals the nth value of the
// last record, and -1 otherwise.
func (d *decoder) again(s *shape, nth, v int) int {
	if nth >= len(s) {
		return -1
	}
	b, n := d.B, len(s[nth].value)
	if n == 0 || len(b)-v <= n || string(b[v:v+n]) != string(s[nth].value) {
		return -1
	}
	if c := b[v+n]; c != ',' && c != '}' {
		return -1 // a longer number, or white space
	}
	return v + n
}

// recurring decodes the string at v, whose value the next record likely repeats.
func (d *decoder) recurring(s *shape, nth, v int, name string) (text string, end int) {
	if end = d.again(s, nth, v); end >= 0 {
		return s[nth].text, end
	}
	t, end := d.Text(v, name)
	if end >= 0 && nth < len(s) {
		s[nth].value, s[nth].text = d.B[v:end], string(t)
		return s[nth].text, end
	}
	return string(t), end
}

// unread checks a value that no field needs.
func (d *decoder) unread(s *shape, nth, v int) int {
	if end := d.again(s, nth, v); end >= 0 {
		return end
	}
	end := d.Skip(v)
	if end >= 0 && nth < len(s) && end-v <= 64 {
		s[nth].value = d.B[v:end]
	}
	return end
}

// time reads the time at v; it is the same for all records of a second.
func (d *decoder) time(s *shape, nth, v int) (t time.Time, end int) {
	if end = d.again(s, nth, v); end >= 0 {
		return s[nth].time, end
	}
	if end = d.Skip(v); end < 0 {
		return time.Time{}, end
	}
	t, ok := parseTime(d.B[v:end])
	if !ok {
		d.note("ApproximateCreationDateTime " + excerpt(d.B[v:end]) + " is not a time")
	} else if nth < len(s) {
		s[nth].value, s[nth].time = d.B[v:end], t
	}
	return t, end
}

// excerpt returns the beginning of a JSON value for an error message.
func excerpt(raw []byte) string {
	const most = 60
	if len(raw) <= most {
		return string(raw)
	}
	return string(raw[:most]) + "…"
}
