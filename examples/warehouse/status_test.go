package warehouse

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/streamtest"
)

// wanted is the result of the fixtures' events. The sixth event is an hour later than
// its id says, the second is in another zone.
const wanted = `status {"complete":true,"create_date":"2026-01-31T10:02:00.000Z","env":"dev","error":false,"key":"whatever!dev!1.0.0","pkg":"whatever","previous_version":"0.9.0","total":2,"update_date":"2026-01-31T12:12:00+01:00","version":"1.0.0"}
status_head {"create_date":"2026-01-31T10:06:00.000Z","env":"dev","history":[{"event_id":"9ad45000-fe8b-11f0-8001-0242ac120000","version":"0.9.0"},{"event_id":"7167f400-fe8c-11f0-8001-0242ac120004","total":2,"version":"1.0.0"}],"key":"whatever!dev","pkg":"whatever","previous_version":"0.9.0","total":2,"update_date":"2026-01-31T10:06:00.000Z","version":"1.0.0"}
status_counter {"count":2,"env":"dev","key":"whatever!dev!1.0.0","pkg":"whatever","version":"1.0.0"}
status_counter {"key":"whatever!dev!1.0.0!en-GB","marker":true}
status_counter {"key":"whatever!dev!1.0.0!en-US","marker":true}
`

func TestEventsInAnyOrder(t *testing.T) { eventsInAnyOrder(t, 22) }

// The items are the same in each order of the events, both when each event is
// handled as it comes and when all are handled in an order that is drawn. One
// order in nth is tried.
func eventsInAnyOrder(t *testing.T, nth uint64) {
	fx := Fixtures()
	events := make([]sluice.Item, 6)
	for i := range events {
		events[i] = fx[1+i].Item
	}
	events[2] = events[2].With(item.String("create_date", "2026-01-31T10:06:00.000Z"))
	events[5] = events[5].With(item.String("create_date", "2026-01-31T12:12:00+01:00"))
	seed := uint64(0)
	for order := range permutations(len(events)) {
		if seed++; seed%nth > 0 {
			continue
		}
		for _, drawn := range []bool{false, true} {
			m := newMemory(t)
			m.put("status_head", fx[0].Item)
			if drawn {
				m.drawn(seed)
			}
			for _, i := range order {
				m.put("status_event", events[i])
				if !drawn {
					m.run()
				}
			}
			m.run()
			m.checkBuild(fmt.Sprintf("order %v, drawn %t", order, drawn), fx[7].Item)
		}
	}
}

// checkBuild compares the result of the fixtures' events, before and after a late event
// of the version before.
func (m *memory) checkBuild(order string, late sluice.Item) {
	m.t.Helper()
	if got := m.state("status", "status_head", "status_counter"); got != wanted {
		m.t.Fatalf("%s:\n%s", order, got)
	}
	if len(m.told) != 2 {
		m.t.Fatalf("%s: told %v", order, m.told)
	}
	m.put("status_event", late)
	m.run()
	if head, _, err := m.StatusHead(m.t.Context(), "whatever", "dev"); err != nil || head.Version != "1.0.0" || head.Updated != "2026-01-31T10:06:00.000Z" {
		m.t.Fatalf("%s: %+v, %v", order, head, err)
	}
}

func queuedEvent(id, version, total, date string) sluice.Item {
	it := item.Of(item.String("key", "whatever!dev!"+version), item.String("event_id", id), item.String("pkg", "whatever"),
		item.String("env", "dev"), item.String("version", version), item.String("event_type", "queued"))
	if total != "" {
		it = it.With(item.Number("total", total))
	}
	if date != "" {
		it = it.With(item.String("create_date", date))
	}
	return it
}

// A build is queued with several totals; the smallest counts. The items are the same
// for each order of the events, also if the larger total comes after the build is
// complete.
func TestTotalsInAnyOrder(t *testing.T) {
	events := []sluice.Item{
		queuedEvent(later(6), "1.0.0", "2", ""), queuedEvent(later(8), "1.0.0", "1", ""),
		Fixtures()[2].Item, Fixtures()[4].Item, // complete in one locale, an error in another
	}
	for order := range permutations(len(events)) {
		m := newMemory(t)
		for _, i := range order {
			m.put("status_event", events[i])
			m.run()
		}
		got := m.state("status", "status_head")
		for _, want := range []string{
			`status {"complete":true,"create_date":"2026-01-31T10:04:00.000Z","env":"dev","error":false,"key":"whatever!dev!1.0.0","pkg":"whatever","total":1,"update_date":"2026-01-31T10:08:00.000Z","version":"1.0.0"}` + "\n",
			`"total":1,"version":"1.0.0"}],"key":"whatever!dev","pkg":"whatever","total":1,`,
		} {
			if !strings.Contains(got, want) {
				t.Fatalf("in the order %v:\n%s\nno %s", order, got, want)
			}
		}
	}
}

func TestHeadsInAnyOrder(t *testing.T) { headsInAnyOrder(t, 3) }

// Heads and predecessors go by the time of ids of all kinds. A version that is
// queued twice keeps its smallest total. One order in nth is tried.
func headsInAnyOrder(t *testing.T, nth int) {
	events := []sluice.Item{
		queuedEvent("c232ab00-9414-11ec-b3c8-9f6bdeced846", "1.0.0", "5", ""),                          // 19:22:22.000, version 1
		queuedEvent("017f22e2-7d98-7cc3-98c4-dc0c0c07398f", "1.1.0", "2", ""),                          // 19:22:23.000, version 7
		queuedEvent("01FWHE50C0TTTTTTTTTTTTTTTT", "1.2.0", "3", "2020-01-01T00:00:00.000Z"),            // 19:22:24.000, a ULID
		queuedEvent("1ec9414c-48ed-6e00-8000-000000000000", "1.3.0", "", ""),                           // 19:22:25.984, version 6
		queuedEvent("017f22e2-8d38-7cc3-98c4-dc0c0c07398f", "1.0.0", "1", "2030-01-01T00:00:00+01:00"), // later still, and the smaller text
	}
	var first string
	n := 0
	for order := range permutations(len(events)) {
		if n++; n%nth > 0 {
			continue
		}
		m := newMemory(t)
		for _, i := range order {
			m.put("status_event", events[i])
			m.run()
		}
		got := m.state("status", "status_head")
		if first == "" {
			first = got
		}
		if got != first {
			t.Fatalf("in the order %v:\n%s\nand before that\n%s", order, got, first)
		}
	}
	for _, want := range []string{
		`"previous_version":"1.3.0","total":1,"update_date":"2030-01-01T00:00:00+01:00","version":"1.0.0"}`,
		`status_head {"create_date":"2020-01-01T00:00:00.000Z","env":"dev","history":[{"event_id":"017f22e2-`,
		`"key":"whatever!dev!1.3.0","pkg":"whatever","previous_version":"1.2.0"`,
		`"key":"whatever!dev!1.2.0","pkg":"whatever","previous_version":"1.1.0"`,
	} {
		if !strings.Contains(first, want) {
			t.Errorf("no %s in\n%s", want, first)
		}
	}
}

// A version that comes 15 versions late finds its place. The limits of the README: a
// version that comes 16 late finds no place. A version queued again after 16 others
// stays the predecessor of the version after it.
func TestLateVersions(t *testing.T) {
	inOrder := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
	reversed := slices.Clone(inOrder)
	slices.Reverse(reversed)
	again := append(slices.Clone(inOrder), 17) // version 0 again
	left := func(order []int) string {
		m := newMemory(t)
		for _, i := range order {
			m.put("status_event", queuedEvent(later(i), fmt.Sprintf("1.%d.0", i%17), "1", ""))
			m.run()
		}
		return m.state("status", "status_head")
	}
	want := left(inOrder)
	for _, tt := range []struct {
		order []int
		want  string
		same  bool
	}{
		{[]int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0, 16}, want, true},
		{reversed, want, false},
		{append(slices.Clone(inOrder[:16]), 17, 16), left(again), false},
	} {
		if got := left(tt.order); (got == tt.want) != tt.same {
			t.Errorf("in the order %v:\n%s\nand in their own:\n%s", tt.order, got, tt.want)
		}
	}
}

// An event that can never be handled is parked. The error names the mistake, without
// values.
func TestBadEvents(t *testing.T) {
	m := newMemory(t)
	good := Fixtures()[3].Item
	for _, tt := range []struct {
		bad  sluice.Item
		want string
	}{
		{good.With(item.String("event_id", "03")), "event_id: it has 2 characters; want a UUID of version 1, 6 or 7, or a ULID"},
		{good.With(item.String("event_id", "919108f7-52d1-4320-9bac-f847db4148a8")), "event_id: it is a UUID of version 4, which has no time that orders it; want"},
		{good.With(item.String("create_date", "yesterday")), "create_date is no ISO 8601 date"},
		{good.With(item.String("key", "other!dev!1.0.0")), "not its pkg!env!version"},
		{good.With(item.String("pkg", "what!ever")), `is empty or holds "!"`},
		{good.With(item.String("version", "")), `is empty or holds "!"`},
		{good.With(item.String("total", "many")), "total"},
	} {
		rec := streamtest.Insert(m.table("status_event"), tt.bad, streamtest.WithKeys("key", "event_id"))
		err := m.router.Dispatch(t.Context(), &rec)
		if !sluice.IsPermanent(err) || !strings.Contains(fmt.Sprint(err), tt.want) || strings.Contains(fmt.Sprint(err), "whatever") {
			t.Errorf("%v, want %s", err, tt.want)
		}
	}
	if got := m.state("status", "status_head", "status_counter"); got != "" {
		t.Errorf("bad events have left\n%s", got)
	}
	m.put("status_head", Fixtures()[0].Item.With(item.String("history", "none")))
	rec := streamtest.Insert(m.table("status_event"), good, streamtest.WithKeys("key", "event_id"))
	if err := m.router.Dispatch(t.Context(), &rec); !sluice.IsPermanent(err) {
		t.Errorf("a head that is none: %v", err)
	}
}
