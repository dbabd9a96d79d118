package warehouse

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// The UUIDs of RFC 9562's appendix, the ULID of its specification, and ids without a
// time.
func TestParseEventID(t *testing.T) {
	at := time.Date(2022, 2, 22, 19, 22, 22, 0, time.UTC)
	for _, tt := range []struct {
		text string
		at   time.Time
		err  string
	}{
		{"C232AB00-9414-11EC-B3C8-9F6BDECED846", at, ""},
		{"1ec9414c-232a-6b00-b3c8-9f6bdeced846", at, ""},
		{"017F22E2-79B0-7CC3-98C4-DC0C0C07398F", at, ""},
		{"01ARZ3NDEKTSV4RRFFQ69G5FAV", time.UnixMilli(1469922850259).UTC(), ""},
		{"01arz3ndektsv4rrffq69g5fav", time.UnixMilli(1469922850259).UTC(), ""},
		{"00000000-0000-1000-8000-000000000000", time.Date(1582, 10, 15, 0, 0, 0, 0, time.UTC), ""},
		{"919108f7-52d1-4320-9bac-f847db4148a8", at, "a UUID of version 4, which has no time"},
		{"00000000-0000-0000-0000-000000000000", at, "another variant"},
		{"c232ab00-9414-11ec-f3c8-9f6bdeced846", at, "another variant"},
		{"c232ab00-9414-11ec-b3c8-9f6bdeced84g", at, "36 characters, and is no UUID"},
		{"c232ab00x9414-11ec-b3c8-9f6bdeced846", at, "36 characters, and is no UUID"},
		{"81ARZ3NDEKTSV4RRFFQ69G5FAV", at, "26 characters, and is no ULID"},
		{"01ARZ3NDEKTSV4RRFFQ69G5FAU", at, "26 characters, and is no ULID"},
		{"ffffffff-ffff-7fff-bfff-ffffffffffff", at, "after the year 9999"},
		{"7ZZZZZZZZZZZZZZZZZZZZZZZZZ", at, "after the year 9999"},
		{"01", at, "it has 2 characters; want a UUID of version 1, 6 or 7, or a ULID"},
		{"", at, "it has 0 characters"},
	} {
		id, err := ParseEventID(tt.text)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) || tt.text != "" && strings.Contains(err.Error(), tt.text) {
				t.Errorf("%s: %v, want %s", tt.text, err, tt.err)
			}
			continue
		}
		if err != nil || !id.Time().Equal(tt.at) || id.String() != tt.text {
			t.Errorf("%s: %v at %v, %v; want %v", tt.text, id, id.Time(), err, tt.at)
		}
	}
}

// ordered are ids in their order, which is not that of their texts.
var ordered = []string{
	"f0000000-9413-11ec-8000-000000000000", // version 1: its lowest bits stand first
	"01FWHE4YDG0000000000000000",           // a ULID of 19:22:22.000
	"017f22e2-79b0-7cc3-98c4-dc0c0c07398f", // version 7 of that time, larger bytes
	"1ec9414c-232a-6b00-b3c8-9f6bdeced846", // version 6 of that time
	"c232ab00-9414-11ec-b3c8-9f6bdeced846", // version 1 of that time
	"c232ab00-9414-11ec-b3c8-9f6bdeced847",
	"c232ab01-9414-11ec-8000-000000000000", // 100 ns later
	"c232d20f-9414-11ec-8000-000000000000", // the last one of that millisecond
	"017f22e2-79b1-7000-8000-000000000000", // a millisecond later
	"00000000-9415-11ec-8000-000000000000",
	"01", // no ids
	"no",
}

func TestOrderOfEventIDs(t *testing.T) {
	for range 100 {
		got := slices.Clone(ordered)
		rand.Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
		slices.SortFunc(got, compareIDs)
		if !slices.Equal(got, ordered) {
			t.Fatalf("%q", got)
		}
	}
	if slices.IsSorted(ordered) {
		t.Error("the order of the texts is the same: it shows nothing")
	}
	if a, b := "C232AB00-9414-11EC-B3C8-9F6BDECED846", ordered[4]; compareIDs(a, b) >= 0 || compareIDs(b, a) <= 0 || compareIDs(a, a) != 0 {
		t.Error("two spellings of one id have no order")
	}
}

func TestDates(t *testing.T) {
	var s span
	for _, text := range []string{"", "2026-01-01T12:00:00+02:00", "2026-01-01T10:30:00.5Z", "2026-01-01T09:59Z", "2026-01-01T11:00:00+0000", "2026-01-01"} {
		d, err := parseDate(text)
		if err != nil {
			t.Error(err)
		}
		s = s.with(d)
	}
	if s.from.text != "2026-01-01" || s.to.text != "2026-01-01T11:00:00+0000" {
		t.Errorf("%+v", s)
	}
	for _, bad := range []string{"yesterday", "2026-01-01T10:00:00", "1700000000"} {
		if _, err := parseDate(bad); err == nil || strings.Contains(err.Error(), bad) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	id, err := ParseEventID("c232d20f-9414-11ec-8000-000000000000")
	if got := dateOf(id).text; got != "2022-02-22T19:22:22.000Z" || err != nil {
		t.Error(got, err)
	}
}
