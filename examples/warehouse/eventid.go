package warehouse

import (
	"bytes"
	"cmp"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
)

// EventID is the id of a status event: a UUID of version 1 (a timeUUID), 6 or 7,
// or a ULID. The zero EventID is before all others.
type EventID struct {
	ticks int64 // of 100 ns since 1970
	bytes [16]byte
	text  string
}

// ParseEventID reads an id. What it refuses has no time to be ordered by.
func ParseEventID(text string) (id EventID, err error) {
	id.text = text
	switch len(text) {
	case 36:
		err = id.uuid()
	case 26:
		err = id.ulid()
	default:
		err = fmt.Errorf("it has %d characters", len(text))
	}
	if err == nil && id.Time().Year() > 9999 {
		err = errors.New("its time is after the year 9999")
	}
	if err != nil {
		return EventID{}, fmt.Errorf("%w; want a UUID of version 1, 6 or 7, or a ULID", err)
	}
	return id, nil
}

// Time is when the event happened. UUIDs of version 1 and 6 count in units of
// 100 ns, the others in milliseconds.
func (a EventID) Time() time.Time { return time.Unix(a.ticks/1e7, a.ticks%1e7*100).UTC() }

// Compare orders ids by time, then by their 16 bytes, then by their text, in which
// the same id may be spelled differently. An id that counts in milliseconds
// stands at the beginning of its millisecond. That is one order of all ids,
// whatever their kinds.
func (a EventID) Compare(b EventID) int {
	return cmp.Or(cmp.Compare(a.ticks, b.ticks), bytes.Compare(a.bytes[:], b.bytes[:]), strings.Compare(a.text, b.text))
}

// String returns the id as it was written.
func (a EventID) String() string { return a.text }

// gregorian is the beginning of the time of versions 1 and 6, 15 October 1582,
// in ticks before 1970.
const gregorian = 0x01b21dd213814000

func (a *EventID) uuid() error {
	t := a.text
	if t[8] != '-' || t[13] != '-' || t[18] != '-' || t[23] != '-' {
		return errors.New("it has 36 characters, and is no UUID")
	}
	if _, err := hex.Decode(a.bytes[:], []byte(t[:8]+t[9:13]+t[14:18]+t[19:23]+t[24:])); err != nil {
		return errors.New("it has 36 characters, and is no UUID")
	}
	b, u16, u32 := a.bytes[:], binary.BigEndian.Uint16, binary.BigEndian.Uint32
	if b[8]>>6 != 0b10 {
		return errors.New("it is a UUID of another variant than RFC 9562 has")
	}
	switch version := b[6] >> 4; version {
	case 1:
		a.ticks = int64(u16(b[6:])&0xfff)<<48 | int64(u16(b[4:]))<<32 | int64(u32(b)) - gregorian
	case 6:
		a.ticks = int64(u32(b))<<28 | int64(u16(b[4:]))<<12 | int64(u16(b[6:])&0xfff) - gregorian
	case 7:
		a.milliseconds()
	default:
		return fmt.Errorf("it is a UUID of version %d, which has no time that orders it", version)
	}
	return nil
}

// crockford is the alphabet of ULIDs.
var crockford = base32.NewEncoding("0123456789ABCDEFGHJKMNPQRSTVWXYZ").WithPadding(base32.NoPadding)

func (a *EventID) ulid() error {
	// 26 characters have 130 bits; six zeros before them make it whole bytes.
	b, err := crockford.DecodeString("000000" + strings.ToUpper(a.text))
	if err != nil || !bytes.Equal(b[:4], make([]byte, 4)) {
		return errors.New("it has 26 characters, and is no ULID")
	}
	copy(a.bytes[:], b[4:])
	a.milliseconds()
	return nil
}

// milliseconds sets the time of the first 48 bits.
func (a *EventID) milliseconds() {
	a.ticks = int64(binary.BigEndian.Uint64(a.bytes[:])>>16) * 10_000
}

// compareIDs orders the texts of ids. Those that are no ids come last.
func compareIDs(a, b string) int {
	x, errX := ParseEventID(a)
	y, errY := ParseEventID(b)
	switch {
	case errX != nil && errY != nil:
		return strings.Compare(a, b)
	case errX != nil:
		return 1
	case errY != nil:
		return -1
	}
	return x.Compare(y)
}
