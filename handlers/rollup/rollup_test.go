package rollup

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/internal/keyhash"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/internal/tally"
	"github.com/sluicehq/sluice/item"
)

func TestWhatARecordAdds(t *testing.T) {
	for _, tt := range []struct {
		name, old, new string
		want           string // adds of the unit; "" is none
	}{
		{"insert", "", order("a", "open", "5"), `shops{"shop":{"S":"a"}} map[orders:1]; owners{"owner":{"S":"o"}} map[open:1 paid:5]`},
		{"remove", order("a", "open", "5"), "", `shops{"shop":{"S":"a"}} map[orders:-1]; owners{"owner":{"S":"o"}} map[open:-1 paid:-5]`},
		{"moved", order("a", "done", "5"), order("b", "done", "5"), `shops{"shop":{"S":"a"}} map[orders:-1]; shops{"shop":{"S":"b"}} map[orders:1]`},
		{"dearer", order("a", "done", "5"), order("a", "done", "7"), `owners{"owner":{"S":"o"}} map[paid:2]`},
		{"cheaper and closed", order("a", "open", "5"), order("a", "done", "2"), `owners{"owner":{"S":"o"}} map[open:-1 paid:-3]`},
		{"priced", order("a", "done", ""), order("a", "done", "3"), `owners{"owner":{"S":"o"}} map[paid:3]`},
		{"renamed", order("a", "done", "5"), strings.Replace(order("a", "done", "5"), "}}", `},"name":{"S":"x"}}`, 1), ""},
		{"same key, written otherwise", order("a", "done", "5"), strings.Replace(order("a", "done", "5"), `"shop":{"S":"a"}`, `"shop":{"S":"\u0061"}`, 1), ""},
		{"without a shop", "", `{"pk":{"S":"a"},"owner":{"S":"o"}}`, ""},
		{"worth nothing", "", `{"pk":{"S":"a"},"owner":{"S":"o"},"price":{"N":"0"}}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(shopA, shopB, owner)
			err := orders(t, w).Handle(t.Context(), record(tt.old, tt.new))
			if tt.want == "" {
				if !sluice.IsSkip(err) || len(w.units) != 0 {
					t.Errorf("%v, units %v", err, w.units)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, a := range w.units[0].Adds {
				got = append(got, fmt.Sprint(place(a.Table, a.Key), " ", a.By))
			}
			if got := strings.Join(got, "; "); got != tt.want {
				t.Errorf("adds %s\nwant %s", got, tt.want)
			}
		})
	}
}

// A record counts once, even if it is redelivered because the answer was lost.
func TestARedeliveredRecordCountsOnce(t *testing.T) {
	w := newWorld(shopA, owner)
	r := orders(t, w)
	rec := record("", order("a", "open", "5"))
	w.after = func() error { return errDown }
	if err := r.Handle(t.Context(), rec); !errors.Is(err, errDown) || sluice.IsPermanent(err) {
		t.Fatal(err)
	}
	w.after = nil
	for range 3 {
		if err := r.Handle(t.Context(), rec); !sluice.IsSkip(err) {
			t.Error(err)
		}
	}
	if got := fmt.Sprint(w.parents[shopA], w.parents[owner]); got != "map[orders:1] map[open:1 paid:5]" {
		t.Error(got)
	}
	for id, ttl := range w.markers {
		if want := "orders#test#" + rec.EventID; id != want {
			t.Errorf("marker %s, want %s", id, want)
		}
		if want := created.Add(73 * time.Hour).Unix(); ttl != want {
			t.Errorf("expires at %d, want %d", ttl, want)
		}
	}
	other := orders(t, w, func(c *Config) { c.Name = "others" })
	if err := other.Handle(t.Context(), rec); err != nil || w.parents[shopA]["orders"] != 2 {
		t.Errorf("another consumer: %v, %v", err, w.parents[shopA])
	}
}

// A late −1 does not restore a deleted parent.
func TestParentsThatAreGoneStayGone(t *testing.T) {
	w := newWorld(owner)
	var counts tally.Tally
	r := orders(t, w, func(c *Config) { c.Metrics = &counts })
	a, _, err := r.apply(t.Context(), record(order("a", "open", "5"), ""))
	if err != nil || len(a.Dropped) != 1 || a.Dropped[0].Table != "shops" || a.Before || a.Nothing {
		t.Errorf("%+v, %v", a, err)
	}
	if got := w.String(); got != owner+" map[open:-1 paid:-5]" {
		t.Error(got)
	}
	if lost := counts.By("sluice_count_additions_lost_total"); len(lost) != 1 || lost["shops"] != 1 {
		t.Error(lost)
	}
	r = orders(t, w, func(c *Config) { c.Counts[0].Create = true })
	if err := r.Handle(t.Context(), record("", order("b", "open", ""))); err != nil || w.parents[shopB]["orders"] != 1 {
		t.Errorf("%v\n%v", err, w)
	}
}

// A record younger than Life may come again, and its marker lives longer. In any order,
// a record counts once or is refused.
func TestRecordsOlderThanTheirMarkers(t *testing.T) {
	for _, origin := range []sluice.Origin{sluice.Live, sluice.Redriven, sluice.Replayed} {
		w := newWorld(shopA, owner)
		r := orders(t, w)
		rec := record("", order("a", "open", "5"))
		rec.Origin = origin
		for _, age := range []time.Duration{0, 24 * time.Hour, 72 * time.Hour} {
			w.now = created.Add(age)
			w.expire()
			if err := r.Handle(t.Context(), rec); err != nil && !sluice.IsSkip(err) {
				t.Fatal(age, err)
			}
		}
		for _, age := range []time.Duration{72*time.Hour + time.Second, 1000 * time.Hour} {
			w.now = created.Add(age)
			w.expire()
			err := r.Handle(t.Context(), rec)
			if !sluice.IsPermanent(err) {
				t.Fatalf("%v, %v: %v", origin, age, err)
			}
			for _, want := range []string{"rollup orders", "table test", rec.EventID, "2024-01-02T03:04:05Z", "72h", "rollup.Recount", "not counted again"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
		}
		if w.parents[shopA]["orders"] != 1 {
			t.Error(w)
		}
	}
}

func TestFirstDeliveryJustInTime(t *testing.T) {
	w := newWorld(shopA, owner)
	r := orders(t, w, func(c *Config) { c.Life = 48 * time.Hour })
	rec := record("", order("a", "open", "5"))
	rec.Origin = sluice.Redriven
	w.now = created.Add(48 * time.Hour)
	if err := r.Handle(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	w.now = created.Add(48*time.Hour - time.Minute) // another worker's clock
	w.expire()
	if err := r.Handle(t.Context(), rec); !sluice.IsSkip(err) {
		t.Error(err)
	}
}

func TestRecordsWithoutATime(t *testing.T) {
	w := newWorld(shopA, owner)
	r := orders(t, w)
	rec := record("", order("a", "open", "5"))
	rec.Created = time.Time{}
	if err := r.Handle(t.Context(), rec); err != nil {
		t.Errorf("live: %v", err)
	}
	rec.Origin = sluice.Redriven
	if err := r.Handle(t.Context(), rec); !sluice.IsPermanent(err) || !strings.Contains(err.Error(), "unknown time") {
		t.Errorf("redriven: %v", err)
	}
	// A clock that is slow does not make the marker end early.
	rec = record("", order("a", "open", "5"))
	w.now = created.Add(-2 * time.Hour)
	if err := r.Handle(t.Context(), rec); err != nil {
		t.Error(err)
	}
	if got := w.markers["orders#test#"+rec.EventID]; got != created.Add(73*time.Hour).Unix() {
		t.Errorf("expires at %d", got)
	}
}

func TestRecordsThatCannotBeCounted(t *testing.T) {
	huge := "9223372036854775807"
	for _, tt := range []struct {
		name string
		rec  *sluice.Record
		want string
	}{
		{"half a price", record("", order("a", "open", "1.5")), `"price" is no whole number`},
		{"a price of words", record("", strings.Replace(order("a", "open", "1"), `{"N":"1"}`, `{"S":"1"}`, 1)), `"price" is no whole number of 64 bits (type S)`},
		{"too large", record(order("a", "open", "-"+huge), order("a", "open", huge)), "does not fit into 64 bits"},
		{"backfill", func() *sluice.Record {
			rec := record("", order("a", "open", "1"))
			rec.EventName = sluice.Snapshot
			return rec
		}(), "use a Recount"},
		{"message", func() *sluice.Record {
			m := sluice.Message{ID: "m", Body: "{}"}
			return m.Record("arn:aws:sqs:us-east-1:123456789012:q")
		}(), "a MESSAGE is no change"},
		{"no old image", recordOf(recordtest.Spec{Event: sluice.Remove, ViewType: "NEW_IMAGE"}), "no old image"},
		{"no new image", recordOf(recordtest.Spec{Event: sluice.Modify, Old: order("a", "open", "1"), ViewType: "OLD_IMAGE"}), "no new image"},
		{"no eventID", func() *sluice.Record {
			rec := record("", order("a", "open", "1"))
			rec.EventID = ""
			return rec
		}(), "no eventID"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(shopA, owner)
			err := orders(t, w).Handle(t.Context(), tt.rec)
			if !sluice.IsPermanent(err) || !strings.Contains(err.Error(), tt.want) || len(w.units) != 0 {
				t.Errorf("%v, %d units", err, len(w.units))
			}
		})
	}
}

func recordOf(s recordtest.Spec) *sluice.Record {
	rec := recordtest.New(s)
	return &rec
}

func TestAlso(t *testing.T) {
	w := newWorld(shopA, owner)
	row := dynamo.Put("ledger", item.Of(item.String("pk", "x")))
	var fail error
	r := orders(t, w, func(c *Config) {
		c.Also = func(*sluice.Record) ([]dynamo.Add, []dynamo.Op, error) {
			return []dynamo.Add{{Table: "shops", Key: parse(`{"shop":{"S":"a"}}`), By: map[string]int64{"seen": 1}}}, []dynamo.Op{row}, fail
		}
	})
	if err := r.Handle(t.Context(), record("", order("a", "open", ""))); err != nil {
		t.Fatal(err)
	}
	if u := w.units[0]; len(u.Ops) != 1 || len(u.Adds) != 2 || fmt.Sprint(u.Adds[0].By) != "map[orders:1 seen:1]" {
		t.Errorf("%+v", u)
	}
	fail = errDown
	if err := r.Handle(t.Context(), record("", order("a", "open", ""))); !errors.Is(err, errDown) || sluice.IsPermanent(err) {
		t.Error(err)
	}
	fail = nil
	w.before = func() error { return &dynamo.ConditionError{Failed: []int{0}, Tables: []string{"ledger"}} }
	if err := r.Handle(t.Context(), record("", order("a", "open", ""))); !sluice.IsPermanent(err) || !dynamo.IsCondition(err) {
		t.Error(err)
	}
}

func TestFrom(t *testing.T) {
	key := From(map[string]string{"id": "shop", "n": "no", "b": "bin"})
	if got := string(key(parse(`{"bin":{"B":"eA=="},"no":{"N":"7"},"shop":{"S":"ä\n"},"x":{"S":"y"}}`)).Raw()); got != `{"b":{"B":"eA=="},"id":{"S":"ä\n"},"n":{"N":"7"}}` {
		t.Error(got)
	}
	for _, child := range []string{`{"shop":{"S":"a"},"no":{"N":"7"}}`, `{"shop":{"S":"a"},"no":{"N":"7"},"bin":{"BOOL":true}}`} {
		if got := key(parse(child)); got.Exists() {
			t.Errorf("%s", got.Raw())
		}
	}
}

// A child with an empty or NULL reference has no parent there. Its record counts on its
// other parents.
func TestChildrenWithoutAParent(t *testing.T) {
	for _, none := range []string{`{"NULL":true}`, `{"S":""}`, `{"B":""}`, `{"BOOL":true}`, `{"L":[]}`} {
		for name, key := range map[string]func(sluice.Item) sluice.Item{"By": By("id", "n"), "From": From(map[string]string{"x": "id", "y": "n"})} {
			if got := key(parse(`{"id":{"S":"a"},"n":` + none + `}`)); got.Exists() {
				t.Errorf("%s of %s: %s", name, none, got.Raw())
			}
			if got := key(parse(`{"id":{"S":"a"},"n":{"N":"7"},"z":` + none + `}`)); got.Len() != 2 {
				t.Errorf("%s: %s", name, got.Raw())
			}
		}
	}
}

func TestNewNamesWhatIsWrong(t *testing.T) {
	_, err := New(Config{Name: "a#b", Life: time.Hour, Counts: []Count{{}, {Create: true}}})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{`Name is "a#b"`, "Counts[0]: Table", "Attribute is missing", "Key is missing", "Counts[1]: Create is true, unlike", "Once is missing", "Get is missing", "Markers is missing", "Life is 1h0m0s, want at least 25h"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\ndoes not say %q", err, want)
		}
	}
	if _, err = New(Config{}); !strings.Contains(err.Error(), "Counts and Also are missing") {
		t.Error(err)
	}
}

// Random histories of orders: each record comes up to three times, and the database
// fails before and after its work. The counters equal a plain count.
func TestSeeds(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		w := newWorld(shopA, shopB, owner)
		r := orders(t, w)
		flaky := func() error {
			if rnd.IntN(4) == 0 {
				return errDown
			}
			return nil
		}
		w.before, w.after = flaky, flaky

		want := map[string]map[string]int64{shopA: {}, shopB: {}, owner: {}}
		var records []*sluice.Record
		for range 5 {
			image := ""
			for range rnd.IntN(6) {
				next := ""
				if rnd.IntN(4) > 0 {
					next = order([]string{"a", "b"}[rnd.IntN(2)], []string{"open", "done"}[rnd.IntN(2)], []string{"", "0", "3", "-4"}[rnd.IntN(4)])
				}
				if next == image {
					continue
				}
				rec := record(image, next)
				for range 1 + rnd.IntN(3) {
					records = append(records, rec)
				}
				image = next
			}
			if image == "" {
				continue
			}
			it := parse(image)
			shop, _ := it.Lookup("shop")
			want[fmt.Sprintf(`shops{"shop":{"S":%q}}`, shop.Str())]["orders"]++
			if price, ok := it.Lookup("price"); ok {
				n, _ := price.Int64()
				want[owner]["paid"] += n
			}
			if state, _ := it.Lookup("state"); state.Is("open") {
				want[owner]["open"]++
			}
		}
		rnd.Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })
		for _, rec := range records {
			for {
				err := r.Handle(t.Context(), rec)
				if err == nil || sluice.IsSkip(err) {
					break
				}
				if !errors.Is(err, errDown) {
					t.Fatal(err)
				}
			}
		}
		for parent, counters := range want {
			for _, name := range []string{"orders", "paid", "open"} {
				if got := w.parents[parent][name]; got != counters[name] {
					t.Fatalf("seed %d: %s of %s is %d, want %d", seed, name, parent, got, counters[name])
				}
			}
		}
	}
}

// A counter that is no number fails each of its records: the error names the number
// and its parent.
func TestErrorNamesTheCounter(t *testing.T) {
	w := newWorld(shopA)
	w.before = func() error { return errDown }
	err := orders(t, w).Handle(t.Context(), record("", order("a", "open", "5")))
	if err == nil || !strings.Contains(err.Error(), "adding orders#") {
		t.Fatal(err)
	}
	for _, want := range []string{"orders of " + keyhash.Item(parse(`{"shop":{"S":"a"}}`)) + " of table shops; ", "open, paid of " + keyhash.Item(parse(`{"owner":{"S":"o"}}`)) + " of table owners: down"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}
