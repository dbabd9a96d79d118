package router

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/recordtest"
)

// benchRecord is a MODIFY of 25 attributes with the type among the first.
func benchRecord(more string) *sluice.Record {
	var b strings.Builder
	fmt.Fprintf(&b, `{"PK":{"S":"a271244"},"SK":{"S":"search"},"entityType":{"S":"search"},"status":{"S":"active"}`)
	for i := range 21 {
		fmt.Fprintf(&b, `,"attribute%d":{"S":"some text of usual length %d"}`, i, i)
	}
	rec := recordtest.New(recordtest.Spec{
		Keys: `{"PK":{"S":"a271244"},"SK":{"S":"search"}}`,
		Old:  b.String() + "}",
		New:  b.String() + more + "}",
	})
	return &rec
}

func benchRouter() *Router {
	r := New()
	r.Handle("search#INSERT", nothing)
	r.Handle("search#MODIFY", nothing)
	r.Handle("contact#REMOVE", nothing)
	r.Handle("search#REMOVE", nothing)
	return r
}

func TestMatchDoesNotAllocate(t *testing.T) {
	for name, r := range map[string]*Router{
		"attribute": benchRouter(),
		"chain":     New(TypeFrom(Chain(Attribute("none"), KeyPattern("SK", "{type}#*"), Table(nil)))),
	} {
		rec := benchRecord("")
		dst := make([]*sluice.Route, 0, 8)
		if n := testing.AllocsPerRun(100, func() {
			if _, err := r.Match(dst, rec); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations a record", name, n)
		}
	}
}

func BenchmarkMatch(b *testing.B) {
	for _, bb := range []struct {
		name string
		r    *Router
		rec  *sluice.Record
	}{
		{"attribute", benchRouter(), benchRecord("")},
		{"unrouted", func() *Router { r := New(); r.Handle("other#INSERT", nothing); return r }(), benchRecord("")},
		{"changed", func() *Router { r := New(); r.Handle("search#MODIFY", nothing, Changed("status")); return r }(), benchRecord("")},
		{"ignoring", func() *Router { r := New(); r.Handle("search#MODIFY", nothing, ChangedIgnoring("at")); return r }(), benchRecord(`,"at":{"N":"1"}`)},
		{"keypattern", func() *Router {
			r := New(TypeFrom(KeyPattern("SK", "{type}")))
			r.Handle("search#*", nothing)
			return r
		}(), benchRecord("")},
	} {
		b.Run(bb.name, func(b *testing.B) {
			dst := make([]*sluice.Route, 0, 8)
			b.ReportAllocs()
			for b.Loop() {
				var err error
				if dst, err = bb.r.Match(dst[:0], bb.rec); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkDispatch(b *testing.B) {
	r, rec, ctx := benchRouter(), benchRecord(""), context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if err := r.Dispatch(ctx, rec); err != nil {
			b.Fatal(err)
		}
	}
}
