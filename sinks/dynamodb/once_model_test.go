package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/item"
)

func pk(format string, args ...any) sluice.Item {
	return item.Of(item.String("pk", fmt.Sprintf(format, args...)))
}

func marker(format string, args ...any) dynamo.Marker {
	return dynamo.NewMarker("markers", fmt.Sprintf(format, args...), time.Unix(1700000000, 0))
}

// planned is a unit with its expected outcome.
type planned struct {
	unit      dynamo.Unit
	dropped   []int
	unmet     []int // indexes of Ops whose condition never holds
	permanent bool
	table     bool // names a table that is not there
}

const (
	missingItem = "gone"
	textItem    = "text" // its attribute "s" is text
)

func plan(r *rand.Rand, i int) planned {
	p := planned{unit: dynamo.Unit{Marker: marker("m%d", i)}}
	for k := range r.IntN(4) {
		a := dynamo.Add{Table: "counters", By: map[string]int64{}}
		switch r.IntN(12) {
		case 0:
			a.Key = pk(missingItem)
			a.Else = dynamo.Update("states", pk("else%d", i), "SET #s = :s").Name("#s", "s").Value(":s", "dropped")
			p.dropped = append(p.dropped, k)
		case 1:
			a.Key, a.Create = pk("made%d-%d", k, r.IntN(2)), true
		case 2: // sums would wrap
			a.Key, a.By["n"] = pk("large%d", k), []int64{math.MaxInt64, math.MinInt64, math.MaxInt64 / 2}[r.IntN(3)]
		case 3:
			a.Key = pk(textItem)
			if r.IntN(3) == 0 {
				a.By["s"] = 1
			}
		case 4: // made by some, and not by others
			a.Key, a.Create = pk("both%d", k), r.IntN(2) == 0
		default:
			a.Key = pk("c%d-%d", k, r.IntN(3))
		}
		if slices.ContainsFunc(p.unit.Adds, func(b dynamo.Add) bool { return b.Key.Equal(a.Key) }) {
			if a.Key.Equal(pk(missingItem)) {
				p.dropped = slices.DeleteFunc(p.dropped, func(d int) bool { return d == k })
			}
			a.Key, a.By, a.Create, a.Else = pk("c%d-0", 4+k), map[string]int64{}, false, dynamo.Op{}
		}
		if len(a.By) == 0 || r.IntN(3) == 0 {
			a.By[fmt.Sprint("n", r.IntN(3))] = int64(r.IntN(9) - 4)
		}
		p.permanent = p.permanent || a.By["s"] != 0
		p.unit.Adds = append(p.unit.Adds, a)
	}
	if r.IntN(4) == 0 { // a write of its own, whose condition holds once
		p.unit.Ops = append(p.unit.Ops, dynamo.Update("states", pk("s%d", i), "SET #s = :new").If("#s = :old").
			Name("#s", "s").Value(":old", "0").Value(":new", fmt.Sprint("by ", i)))
	}
	if r.IntN(8) == 0 {
		p.unmet = append(p.unmet, len(p.unit.Ops))
		p.unit.Ops = append(p.unit.Ops, dynamo.Check("states", pk("never"), "#s = :old").Name("#s", "s").Value(":old", "x"))
	}
	switch r.IntN(40) {
	case 0:
		p.permanent = true
		p.unit.Ops = append(p.unit.Ops, dynamo.Update("states", pk("u%d", i), "SET !"))
	case 1:
		p.table = true
		p.unit.Ops = append(p.unit.Ops, dynamo.Update("missing", pk("u%d", i), "SET #s = :s").Name("#s", "s").Value(":s", "1"))
	}
	return p
}

func TestOnceAgainstAModel(t *testing.T) {
	for seed := range 20 {
		synctest.Test(t, func(t *testing.T) { onceModel(t, uint64(seed)) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func onceModel(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 2))
	f := faults{}
	switch seed % 4 {
	case 1, 2:
		f = faults{before: .05, lost: .1, throttle: .05, step: .01, foreign: .01, hidden: .05}
	case 3: // hardly a transaction goes well, and some outlast the commits after them
		f = faults{before: .02, lost: .05, throttle: .1, step: .05, foreign: .05, hidden: .05, slow: .05}
	}
	s := newService(t, seed, f)
	for k := range 8 {
		for n := range 3 {
			s.items[fmt.Sprintf("counters/c%d-%d", k, n)] = map[string]string{"pk": "c"}
		}
		s.items[fmt.Sprintf("counters/large%d", k)] = map[string]string{"pk": "l"}
		s.items[fmt.Sprintf("counters/both%d", k)] = map[string]string{"pk": "b"}
	}
	s.items["counters/"+textItem] = map[string]string{"pk": textItem, "s": "text"}
	plans := make([]planned, 150)
	for i := range plans {
		plans[i] = plan(r, i)
		s.items[fmt.Sprintf("states/s%d", i)] = map[string]string{"pk": "s", "s": "0"}
	}
	// Each is asked for one to three times, by several callers, in any order.
	var calls []int
	for i := range plans {
		for range 1 + r.IntN(3) {
			calls = append(calls, i)
		}
	}
	r.Shuffle(len(calls), func(i, j int) { calls[i], calls[j] = calls[j], calls[i] })
	store := s.store(Options{InFlight: 1 + r.IntN(16), Attempts: 4})
	hasty := seed%4 >= 2 // some callers have little time, or lose interest
	var mu sync.Mutex
	first := map[int]int{} // answers that were not Before
	var wg sync.WaitGroup
	work := make(chan int)
	for range 1 + r.IntN(64) {
		wg.Go(func() {
			for i := range work {
				p := plans[i]
				for try := 0; ; try++ {
					ctx, cancel := t.Context(), context.CancelFunc(func() {})
					if hasty && try%2 == 0 {
						soon := time.Duration(1+i%40) * time.Millisecond
						if i%2 == 0 {
							ctx, cancel = context.WithTimeout(ctx, soon)
						} else {
							ctx, cancel = context.WithCancel(ctx)
							time.AfterFunc(soon, cancel)
						}
					}
					got, err := store.Once(ctx, p.unit)
					cancel()
					if p.settled(err) {
						if msg := p.check(got, err); msg != "" {
							t.Errorf("unit %d: %s: %+v %v", i, msg, got, err)
						}
						if err == nil && !got.Before {
							mu.Lock()
							first[i]++
							mu.Unlock()
						}
						break
					}
					if try > 200 {
						t.Errorf("unit %d: %v", i, err)
						break
					}
				}
			}
		})
	}
	for _, i := range calls {
		work <- i
	}
	close(work)
	wg.Wait()
	s.compare(t, plans, first, f == faults{})
}

// settled reports whether a caller would not ask again.
func (p *planned) settled(err error) bool {
	return err == nil || sluice.IsPermanent(err) || dynamo.IsCondition(err) || p.table
}

func (p *planned) check(got dynamo.Applied, err error) string {
	var c *dynamo.ConditionError
	switch {
	case p.table:
		if err == nil || sluice.IsPermanent(err) || dynamo.IsCondition(err) {
			return "want an error that may pass"
		}
	case p.permanent && len(p.unmet) > 0:
		if !sluice.IsPermanent(err) && !dynamo.IsCondition(err) {
			return "want a failure"
		}
	case p.permanent:
		if !sluice.IsPermanent(err) {
			return "want a permanent error"
		}
	case len(p.unmet) > 0:
		if !errors.As(err, &c) || !slices.Equal(c.Failed, p.unmet) || c.Tables[0] != "states" || c.Items[0].Exists() {
			return "want a ConditionError"
		}
	case err != nil:
		return "want nil"
	case !got.Before && !slices.Equal(got.Dropped, p.dropped):
		return fmt.Sprintf("want dropped %v", p.dropped)
	}
	return ""
}

// compare adds up the applied units, one after another.
func (s *service) compare(t *testing.T, plans []planned, first map[int]int, faultless bool) {
	want := map[string]*big.Int{}
	for i, p := range plans {
		_, applied := s.items[fmt.Sprintf("markers/m%d", i)]
		if fails := p.permanent || p.table || len(p.unmet) > 0; applied == fails {
			t.Errorf("unit %d: applied %v, fails %v", i, applied, fails)
		}
		state := s.items[fmt.Sprintf("states/s%d", i)]["s"]
		if _, written := s.items[fmt.Sprintf("states/else%d", i)]; written != (applied && len(p.dropped) > 0) {
			t.Errorf("unit %d: what stands for an Add is there: %v, applied %v, dropped %v", i, written, applied, p.dropped)
		}
		if changed := state != "0"; changed != (applied && len(p.unit.Ops) > 0) {
			t.Errorf("unit %d: state %q, applied %v", i, state, applied)
		}
		if first[i] > 1 || applied && faultless && first[i] != 1 {
			t.Errorf("unit %d was first %d times", i, first[i])
		}
		if !applied {
			continue
		}
		for k, a := range p.unit.Adds {
			if slices.Contains(p.dropped, k) {
				continue
			}
			id, _ := a.Key.Lookup("pk")
			for name, by := range a.By {
				at := "counters/" + id.Str() + "." + name
				if want[at] == nil {
					want[at] = new(big.Int)
				}
				want[at].Add(want[at], big.NewInt(by))
			}
		}
	}
	for key, it := range s.items {
		for name, v := range it {
			if name == "pk" || name == "ttl" || name == "s" {
				continue
			}
			if w := want[key+"."+name]; w == nil || w.String() != v {
				t.Errorf("%s.%s is %s, want %v", key, name, v, w)
			}
			delete(want, key+"."+name)
		}
	}
	if len(want) > 0 {
		t.Errorf("not there: %v", want)
	}
	if _, ok := s.items["counters/"+missingItem]; ok {
		t.Error("a deleted item is back")
	}
}
