package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/handlers/rollup"
	"github.com/sluicehq/sluice/item"
)

// customers have one order each, and say that they have 2.
func customers(names ...string) (one rollup.Recount, parents iter.Seq2[sluice.Item, error]) {
	items := func(all ...sluice.Item) iter.Seq2[sluice.Item, error] {
		return func(yield func(sluice.Item, error) bool) {
			for _, it := range all {
				if !yield(it, nil) {
					return
				}
			}
		}
	}
	var keys []sluice.Item
	for _, name := range names {
		keys = append(keys, item.Of(item.String("id", name)))
	}
	return rollup.Recount{
		Name: "orders", Markers: "markers", Table: "customers", Keys: []string{"id"}, Attribute: "orders",
		Get: func(_ context.Context, _ string, key sluice.Item) (sluice.Item, error) {
			return key.With(item.Number("orders", "2")), nil
		},
		Children: func(context.Context, sluice.Item) iter.Seq2[sluice.Item, error] {
			return items(item.Of(item.String("order", "1")))
		},
	}, items(keys...)
}

// A minute in which nothing is printed looks as if it hung.
func TestRecountSaysThatItLooksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out, errs bytes.Buffer
		r := &recounting{printer: printer{w: &out}, cli: &cli{stderr: &errs}, o: recountOptions{settle: time.Minute}}
		one, parents := customers("a", "b")
		if err := r.run(t.Context(), one, parents); err != nil {
			t.Fatal(err)
		}
		if got := errs.String(); got != "2 counters orders of table customers are looked at again after 1m0s (--settle)\n" {
			t.Errorf("%q", got)
		}
		if got := out.String(); !strings.Contains(got, "customers, id=b: orders would be set from 2 to 1\n") {
			t.Errorf("%q", got)
		}
	})
}

// Too many counters that would be lowered are left as they are, and named.
func TestRecountBrake(t *testing.T) {
	for _, tt := range []struct {
		repair bool
		json   bool
		most   int
		says   []string
		fails  string
	}{
		{false, false, 0, []string{"id=b: orders would be set from 2 to 1\n", "2 wrong, 0 busy, 0 not there\n--repair would stop: no counter is lowered: 2 of 2 are higher than the count, and 1 may be lowered; look at them first: --max-deletes 2 lowers them\n"}, ""},
		{true, false, 0, []string{"id=b: orders left, since too many would be lowered: from 2 to 1\n", "2 wrong, 0 busy, 0 not there, 2 of the wrong ones left as they are\n"}, "--max-deletes 2 lowers them"},
		{true, true, 0, []string{`"corrected":false,"held":true}`, `"wrong":2,"busy":0,"gone":0,"held":2,"error":"no counter is lowered`, `"brake":{"lowered":2,"parents":2,"allowed":1}}`}, "--max-deletes 2 lowers them"},
		{true, false, 2, []string{"id=b: orders set from 2 to 1\n", "2 wrong, 0 busy, 0 not there\n"}, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			var out, errs bytes.Buffer
			r := &recounting{printer: printer{w: &out, json: tt.json}, cli: &cli{stderr: &errs}, o: recountOptions{settle: time.Minute, repair: tt.repair, maxDeletes: tt.most}}
			one, parents := customers("a", "b")
			one.Transact = func(context.Context, ...dynamo.Op) error { return nil }
			err := r.run(t.Context(), one, parents)
			if (err == nil) != (tt.fails == "") || err != nil && !strings.HasSuffix(err.Error(), tt.fails) {
				t.Errorf("%+v: %v", tt, err)
			}
			for _, want := range tt.says {
				if !strings.Contains(out.String(), want) {
					t.Errorf("%q is not in %q", want, out.String())
				}
			}
		})
	}
}

// The output advises a repair only if a repair would change a counter.
func TestVerdictOfARecount(t *testing.T) {
	for _, tt := range []struct {
		r    recounting
		want string
	}{
		{recounting{wrong: 1}, "1 counter was wrong: sluice recount --repair sets what is wrong right"},
		{recounting{wrong: 2, braked: true}, "2 counters were wrong"},
		{recounting{wrong: 2, o: recountOptions{repair: true}}, "2 counters were wrong"},
	} {
		if got := tt.r.verdict(); got != tt.want {
			t.Errorf("%s, want %s", got, tt.want)
		}
	}
}

// Children that are truly gone are a reason for a flag, which is named.
func TestRecountWithoutChildren(t *testing.T) {
	for _, trust := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var out, errs bytes.Buffer
			r := &recounting{printer: printer{w: &out}, cli: &cli{stderr: &errs}, o: recountOptions{settle: time.Minute, repair: true, maxDeletes: 2, trust: trust}}
			one, parents := customers("a", "b")
			one.Transact = func(context.Context, ...dynamo.Op) error { return nil }
			one.Children = func(context.Context, sluice.Item) iter.Seq2[sluice.Item, error] {
				return func(func(sluice.Item, error) bool) {}
			}
			err := r.run(t.Context(), one, parents)
			if trust && err != nil || !trust && (err == nil || !strings.HasSuffix(err.Error(), "; if it is the right one: --trust-tables --max-deletes 2 lowers them")) {
				t.Errorf("%v, %s", err, out.String())
			}
		})
	}
}

// A counter that is no number is named; the others are set.
func TestRecountOfATextSaysWhich(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out, errs bytes.Buffer
		r := &recounting{printer: printer{w: &out}, cli: &cli{stderr: &errs}, o: recountOptions{settle: time.Minute}}
		one, parents := customers("a", "b")
		get := one.Get
		one.Get = func(ctx context.Context, table string, key sluice.Item) (sluice.Item, error) {
			if id, _ := key.Lookup("id"); id.Is("a") {
				return key.With(item.String("orders", "many")), nil
			}
			return get(ctx, table, key)
		}
		if err := r.run(t.Context(), one, parents); err != nil || r.failed != 1 {
			t.Fatal(err)
		}
		for _, want := range []string{
			`table customers, id=a: orders left as it is: attribute "orders" is of type S, want N` + "\n",
			"id=b: orders would be set from 2 to 1\n", "1 wrong, 0 busy, 0 not there, 1 not a number\n",
		} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%q is not in %q", want, out.String())
			}
		}
	})
}

// validate reports a missing index of children. It ignores other errors: the made-up
// parent may cause them.
func TestIndexFault(t *testing.T) {
	for text, tells := range map[string]bool{
		"": false, "ValidationException: Condition parameter type does not match schema type": false,
		"ValidationException: The table does not have the specified index: byCustomer":                                                                                             true,
		"ValidationException: One or more parameter values were invalid: Select type ALL_ATTRIBUTES is not supported for global secondary index byCustomer because its projection": true,
	} {
		one, _ := customers()
		one.Children = func(_ context.Context, parent sluice.Item) iter.Seq2[sluice.Item, error] {
			return func(yield func(sluice.Item, error) bool) {
				if text != "" {
					yield(sluice.Item{}, errors.New(text))
				}
			}
		}
		if err := indexFault(t.Context(), "items", one); (err != nil) != tells || tells && err.Error() != "route items: a recount of orders of table customers cannot read the children: "+text {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Without a counted parent, the output is the error alone.
func TestRecountThatFailsAtOnce(t *testing.T) {
	for asJSON, want := range map[bool]string{
		false: "",
		true:  `{"table":"customers","attribute":"orders","parents":0,"right":0,"settled":0,"wrong":0,"busy":0,"gone":0,"error":"reading {\"id\":{\"S\":\"a\"}} of table customers: EOF"}` + "\n",
	} {
		var out, errs bytes.Buffer
		r := &recounting{printer: printer{w: &out, json: asJSON}, cli: &cli{stderr: &errs}, o: recountOptions{settle: time.Minute}}
		one, parents := customers("a")
		one.Get = func(context.Context, string, sluice.Item) (sluice.Item, error) { return sluice.Item{}, io.EOF }
		if err := r.run(t.Context(), one, parents); !errors.Is(err, io.EOF) || out.String() != want {
			t.Errorf("%v, %s", err, out.String())
		}
	}
}

// At Ctrl-C a waiting recount prints its results so far, and that it was stopped.
func TestRecountIsStopped(t *testing.T) {
	for _, tt := range []struct {
		asJSON bool
		want   string
	}{
		{false, "so far: orders of table customers: 2 parents, 0 right, 0 right at a later look, 0 wrong, 0 busy, 0 not there, 2 did not agree and were not looked at again\n"},
		{true, `{"table":"customers","attribute":"orders","parents":2,"right":0,"settled":0,"wrong":0,"busy":0,"gone":0,"open":2,"error":"stopped before all counters were looked at: the same command begins anew"}` + "\n"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var out, errs bytes.Buffer
			ctx, stop := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, stop)
			r := &recounting{printer: printer{w: &out, json: tt.asJSON}, cli: &cli{stderr: &errs}, o: recountOptions{settle: time.Minute}}
			one, parents := customers("a", "b")
			err := r.run(ctx, one, parents)
			if err == nil || err.Error() != "stopped before all counters were looked at: the same command begins anew" {
				t.Errorf("%v", err)
			}
			if got := out.String(); got != tt.want {
				t.Errorf("%s\nwant\n%s", got, tt.want)
			}
		})
	}
}
