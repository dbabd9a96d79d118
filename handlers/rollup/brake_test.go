package rollup

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"
	"testing/synctest"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/internal/brake"
	"github.com/sluicehq/sluice/item"
)

// shops are parents whose counters say how many children they have.
type shops struct {
	counters, children []int
	writes             int
	before             func(i int) // a write
}

// wrong are n shops that count rightly, and more that count too many.
func wrongShops(n, more, children int) *shops {
	s := &shops{}
	for i := range n + more {
		s.children = append(s.children, children)
		s.counters = append(s.counters, children)
		if i >= n {
			s.counters[i] += 2
		}
	}
	return s
}

func (s *shops) at(key sluice.Item) int {
	v, _ := key.Lookup("shop")
	n, _ := v.Int64()
	return int(n)
}

func (s *shops) recount() Recount {
	return Recount{
		Table: "shops", Keys: []string{"shop"}, Attribute: "orders",
		Get: func(_ context.Context, table string, key sluice.Item) (sluice.Item, error) {
			if table == "markers" {
				return sluice.Item{}, nil
			}
			return key.With(item.Number("orders", fmt.Sprint(s.counters[s.at(key)]))), nil
		},
		Children: func(_ context.Context, parent sluice.Item) iter.Seq2[sluice.Item, error] {
			return func(yield func(sluice.Item, error) bool) {
				for i := range s.children[s.at(parent)] {
					if !yield(item.Of(item.Number("order", fmt.Sprint(i))), nil) {
						return
					}
				}
			}
		},
		Name: "orders", Markers: "markers",
		Transact: func(_ context.Context, ops ...dynamo.Op) error {
			op := ops[0]
			i := s.at(op.Key)
			if s.before != nil {
				s.before(i)
			}
			if int64(s.counters[i]) != op.Values[":old"].(int64) {
				return &dynamo.ConditionError{Failed: []int{0}}
			}
			s.writes++
			s.counters[i] = int(op.Values[":new"].(int64))
			return nil
		},
	}
}

func (s *shops) all(yield func(sluice.Item, error) bool) {
	for i := range s.counters {
		if !yield(item.Of(item.Number("shop", fmt.Sprint(i))), nil) {
			return
		}
	}
}

// A table of children that is not the counters' lowers nothing; neither do too
// many counters, unless their number was allowed.
func TestRecountBrake(t *testing.T) {
	for _, tt := range []struct {
		name                  string
		right, high, children int
		most                  int
		want                  *brake.Error
	}{
		{"no child at all", 0, 30, 0, 0, &brake.Error{Lowered: 30, Parents: 30, Allowed: 1, Empty: true}},
		{"no child at all, whatever is allowed", 10, 30, 0, 1000, &brake.Error{Lowered: 30, Parents: 40, Allowed: 1000, Empty: true}},
		{"the children of the only parent are gone", 0, 1, 0, 0, &brake.Error{Lowered: 1, Parents: 1, Allowed: 1, Empty: true}},
		{"the only parent, and its children are gone, whatever is allowed", 0, 1, 0, 1, &brake.Error{Lowered: 1, Parents: 1, Allowed: 1, Empty: true}},
		{"5 %", 95, 5, 1, 0, nil},
		{"above 5 %", 94, 6, 1, 0, &brake.Error{Lowered: 6, Parents: 100, Allowed: 5}},
		{"above 5 %, and allowed", 94, 6, 1, 6, nil},
		{"above the limit", 194, 6, 1, 5, &brake.Error{Lowered: 6, Parents: 200, Allowed: 5}},
	} {
		for _, dry := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				s := wrongShops(tt.right, tt.high, tt.children)
				r := s.recount()
				r.DryRun, r.MaxDeletes = dry, tt.most
				told := 0
				r.Found = func(c Correction) {
					told++
					if c.New != int64(tt.children) || c.Old != int64(tt.children)+2 || c.Held != (!dry && tt.want != nil) {
						t.Errorf("%s, dry %v: told %+v", tt.name, dry, c)
					}
				}
				done, err := r.Run(t.Context(), s.all)
				failed, _ := errors.AsType[*brake.Error](err)
				if !isBrake(done.Brake, tt.want) || (failed != nil) != (!dry && tt.want != nil) {
					t.Errorf("%s, dry %v: %+v, %v, want %v", tt.name, dry, done, err, tt.want)
				}
				writes := 0
				if tt.want == nil && !dry {
					writes = tt.high
				}
				if s.writes != writes || told != tt.high || done.Corrected+done.Held != tt.high || done.Open() != 0 {
					t.Errorf("%s, dry %v: %d writes, want %d; %d told; %+v", tt.name, dry, s.writes, writes, told, done)
				}
			})
		}
	}
}

// More parents of those to be lowered have no child than parents have one, although
// their number is allowed: it is likely to be another table of children. Where it is
// the right one, a flag says so.
func TestRecountMostlyEmpty(t *testing.T) {
	for _, tt := range []struct {
		with, without int // parents with a child, and without
		want          *brake.Error
	}{
		{0, 3, &brake.Error{Lowered: 3, Parents: 3, Allowed: 1000, Empty: true}},
		{1, 3, &brake.Error{Lowered: 3, Parents: 4, Allowed: 1000, MostlyEmpty: true}},
		{2, 3, &brake.Error{Lowered: 3, Parents: 5, Allowed: 1000, MostlyEmpty: true}},
		{3, 3, nil},
		{1, 1, nil},
	} {
		for _, trust := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				s := wrongShops(tt.with, 0, 1)
				for range tt.without {
					s.counters, s.children = append(s.counters, 5), append(s.children, 0)
				}
				r := s.recount()
				r.MaxDeletes, r.TrustTables = 1000, trust
				done, err := r.Run(t.Context(), s.all)
				want := tt.want
				if trust {
					want = nil
				}
				writes := tt.without
				if want != nil {
					writes = 0
				}
				if !isBrake(done.Brake, want) || (err != nil) != (want != nil) || s.writes != writes {
					t.Errorf("%+v, trust %v: %+v, %v; %d writes", tt, trust, done.Brake, err, s.writes)
				}
			})
		}
	}
}

// A counter that is not a number is reported. The others are corrected.
func TestCounterThatIsNoNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := wrongShops(40, 2, 1)
		r := s.recount()
		get, looks := r.Get, 0
		r.Get = func(ctx context.Context, table string, key sluice.Item) (sluice.Item, error) {
			switch i := s.at(key); {
			case table != "shops":
			case i == 7:
				return key.With(item.String("orders", "many")), nil
			case i == 41: // at the second look
				if looks++; looks == 2 {
					return key.With(item.Number("orders", "1.5")), nil
				}
			}
			return get(ctx, table, key)
		}
		var told []string
		r.Found = func(c Correction) { told = append(told, fmt.Sprint(string(c.Key.Raw()), c.Old, c.New, c.Err)) }
		done, err := r.Run(t.Context(), s.all)
		want := Recounted{Parents: 42, Right: 39, Corrected: 1, Failed: 2}
		if err != nil || done != want || done.Open() != 0 || s.writes != 1 || len(told) != 3 || told[0] != `{"shop":{"N":"7"}}0 0 attribute "orders" is of type S, want N` {
			t.Errorf("%+v, %v, want %+v; %d writes; %q", done, err, want, s.writes, told)
		}
	})
}

// Above 1,000 none is lowered, however small their share, and the first 1,000 are
// not kept in memory.
func TestRecountBrakeByNumber(t *testing.T) {
	for most, high := range map[int]int{0: 1001, 2000: 2001} {
		told := 0
		r := &recount{Recount: Recount{Of: "price", MaxDeletes: most, Found: func(c Correction) {
			if told++; !c.Held {
				t.Errorf("%+v", c)
			}
		}}}
		r.done.Parents, r.brake.fertile = 1_000_000, 1
		for range high {
			r.hold(look{seen: seen{counter: 2, sum: 1}})
		}
		if err := r.release(t.Context()); !errors.As(err, new(*brake.Error)) || told != high || r.done.Held != high || len(r.brake.held) > 0 {
			t.Errorf("%v, %d told, %+v", err, told, r.done)
		}
	}
}

// A counter that changes while it is held is counted again.
func TestHeldCounterMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := wrongShops(40, 2, 1)
		moved := false
		s.before = func(i int) {
			if i == 40 && !moved {
				moved = true
				s.counters[i]++ // a record of a child that was there arrives late
			}
		}
		done, err := s.recount().Run(t.Context(), s.all)
		if want := (Recounted{Parents: 42, Right: 40, Corrected: 2}); err != nil || done != want || s.counters[40] != 1 || s.counters[41] != 1 {
			t.Errorf("%+v, %v, want %+v; %v", done, err, want, s.counters[40:])
		}
	})
}

// Counters that are too low are raised all the same, and before any is lowered.
func TestRaisedBeforeTheBrake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := wrongShops(0, 20, 3)
		for i := range 10 {
			s.counters[i] = 0
		}
		done, err := s.recount().Run(t.Context(), s.all)
		if !errors.As(err, new(*brake.Error)) || done.Corrected != 10 || done.Held != 10 || s.writes != 10 {
			t.Errorf("%+v, %v", done, err)
		}
	})
}

// A sum of negative numbers is lowered when it comes nearer to 0.
func TestLowersANegativeSum(t *testing.T) {
	for _, tt := range []struct {
		of           string
		counter, sum int64
		want         bool
	}{{"", 3, 1, true}, {"", 1, 3, false}, {"", -1, 0, false}, {"debt", -9, 0, true}, {"debt", 0, -9, false}, {"debt", -3, -9, false}, {"debt", 9, 3, true}} {
		r := &recount{Recount: Recount{Of: tt.of}}
		if got := r.lowers(look{seen: seen{counter: tt.counter, sum: tt.sum}}); got != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}

func isBrake(err error, want *brake.Error) bool {
	got, _ := errors.AsType[*brake.Error](err)
	return (err == nil) == (want == nil) && (want == nil || got != nil && *got == *want)
}
