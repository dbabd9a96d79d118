package sluice

import "time"

// member is one that is read of a record, as a bit of a set; 0 is any other.
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

	duplicate // of one that has been read
)

func memberOf(name []byte) member {
	switch string(name) {
	case "eventID":
		return eventID
	case "eventName":
		return eventName
	case "eventSource", "EventSource":
		return eventSource
	case "awsRegion":
		return region
	case "eventSourceARN":
		return streamARN
	case "userIdentity":
		return identity
	case "dynamodb":
		return change
	case "ApproximateCreationDateTime":
		return created
	case "Keys":
		return keys
	case "NewImage":
		return newImage
	case "OldImage":
		return oldImage
	case "SequenceNumber":
		return sequence
	case "SizeBytes":
		return size
	case "StreamViewType":
		return viewType
	}
	return 0
}

// shape remembers the members of the last record, because those of the next
// nearly always come in the same order, several with the same value: bytes
// that are equal to bytes already checked need no second check.
type shape [12]struct {
	name  []byte // from its quote up to the value; nil when not known
	value []byte // that may come again; nil else
	id    member

	text string    // what value means
	time time.Time // the same, of created
}

// member checks the name of the nth member, at i, and returns what it is with
// the offset of its value, or -1.
func (d *decoder) member(s *shape, nth, i int) (id member, v int) {
	b := d.b
	if nth < len(s) {
		if n := len(s[nth].name); n > 0 && len(b)-i > n && string(b[i:i+n]) == string(s[nth].name) && b[i+n] > ' ' {
			return s[nth].id, i + n
		}
	}
	name, v := d.name(i)
	if v < 0 {
		return 0, v
	}
	id = memberOf(name)
	if nth < len(s) {
		s[nth].name, s[nth].value, s[nth].id = b[i:v], nil, id
	}
	return id, v
}

// again returns the offset after the value at v if it is the nth member's of
// the record before; else -1.
func (d *decoder) again(s *shape, nth, v int) int {
	if nth >= len(s) {
		return -1
	}
	b, n := d.b, len(s[nth].value)
	if n == 0 || len(b)-v <= n || string(b[v:v+n]) != string(s[nth].value) {
		return -1
	}
	if c := b[v+n]; c != ',' && c != '}' {
		return -1 // a longer number, or white space
	}
	return v + n
}

// recurring reads the string at v that is likely to come again with the next
// record, and returns what it means.
func (d *decoder) recurring(s *shape, nth, v int, name string) (text string, end int) {
	if end = d.again(s, nth, v); end >= 0 {
		return s[nth].text, end
	}
	t, end := d.text(v, name)
	if end >= 0 && nth < len(s) {
		s[nth].value, s[nth].text = d.b[v:end], string(t)
		return s[nth].text, end
	}
	return string(t), end
}

// unread checks a value that nothing is read of.
func (d *decoder) unread(s *shape, nth, v int) int {
	if end := d.again(s, nth, v); end >= 0 {
		return end
	}
	end := d.skip(v)
	if end >= 0 && nth < len(s) && end-v <= 64 {
		s[nth].value = d.b[v:end]
	}
	return end
}

// time reads the time at v; it is the same for all records of a second.
func (d *decoder) time(s *shape, nth, v int) (t time.Time, end int) {
	if end = d.again(s, nth, v); end >= 0 {
		return s[nth].time, end
	}
	if end = d.skip(v); end < 0 {
		return time.Time{}, end
	}
	t, ok := parseTime(d.b[v:end])
	if !ok {
		d.note("ApproximateCreationDateTime " + excerpt(d.b[v:end]) + " is not a time")
	} else if nth < len(s) {
		s[nth].value, s[nth].time = d.b[v:end], t
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
