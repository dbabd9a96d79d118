package config

import (
	"errors"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/streamtest"
)

func TestCheckSample(t *testing.T) {
	recs := []*sluice.Record{}
	for _, rec := range []sluice.Record{
		streamtest.Insert("orders", map[string]any{"pk": "1", "total": "250", "n": 7, "tags": []any{"a"}, "address": map[string]any{"zip": "10115"}}),
		streamtest.Insert("orders", map[string]any{"pk": "2", "total": 250, "n": 8, "paid": true}),
		streamtest.Remove("orders", map[string]any{"pk": "3", "total": 1}),
	} {
		recs = append(recs, &rec)
	}
	for _, tt := range []struct{ when, want string }{
		{`new.n > 5`, ""},
		{`new.n == 5 && new.missing > "a"`, ""},
		{`new.missing == 5`, ""},
		{`new.total > 100`, `new.total is a text in 1 of 2 sample records that have it: > with a number fails for them`},
		// A condition on an attribute must not hide the comparison.
		{`new.n == 1 && new.total >= 100`, `new.total is a text in 1 of 2 sample records that have it: >= with a number fails for them`},
		{`new.n == "7"`, `new.n is a number in 2 of 2 sample records that have it: == with a text is never true for them`},
		{`"7" != new.n`, `new.n is a number in 2 of 2 sample records that have it: != with a text is always true for them`},
		{`new.n in ["7", "8"]`, `new.n is a number in 2 of 2 sample records that have it: in with a text is never true for them`},
		{`new.n in [7, "8"]`, ""},
		{`new.address.zip < 5`, `new.address.zip is a text in 1 of 1 sample records that have it: < with a number fails for them`},
		{`new?.address?.zip == 10115`, `new.address.zip is a text in 1 of 1`},
		{`new.n == new.total`, `new.n is a number in 1 of 2 sample records that have it: == with a text is never true for them`},
		{`old.total < -1`, ""},
		{`new.paid == "true"`, `new.paid is true or false in 1 of 1 sample records that have it: == with a text is never true for them`},
		{`event == 1`, ""}, // Load reports it
		// An attribute may have another type in another kind of item.
		{`(event == "INSERT" and new.n > 5 and new.total > 100) || (type == "b" && new.n == "x")`, `new.total is a text in 1 of 2`},
		{`(event == "REMOVE" && old.total > 0) || (type == "b" and new.paid and new.n == "x")`, ""},
		{`type == "c" && new.n > 5 && (new.total > 100 || new.n == "7")`, ""},
		{`not (type == "c") && new.n == "7"`, `new.n is a number in 2 of 2`},
		{`event == "REMOVE" && new.n == "7"`, ""},
		{`any(new.tags, # > 5)`, `routes[0].when: it fails for the sample record `},
	} {
		c := &Config{Routes: []Route{{Name: "other", When: "new.n == 'x'"}, {Name: "r", When: tt.when}}}
		err := c.CheckSample("r", recs)
		want := strings.Replace(tt.want, "routes[0]", "routes[1]", 1)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot  %v\nwant %s", tt.when, err, want)
		}
		var all Errors
		if err != nil && !errors.As(err, &all) {
			t.Errorf("%T", err)
		}
	}
}
