package router

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/recordtest"
)

func TestResolvers(t *testing.T) {
	const (
		search  = `{"pk":{"S":"a"},"entityType":{"S":"search"}}`
		contact = `{"pk":{"S":"a"},"entityType":{"S":"contact"}}`
		bare    = `{"pk":{"S":"a"}}`
		school  = `{"pk":{"S":"TYPE#Ed-Fi#3.3.1-b#School"},"sk":{"N":"1"}}`
	)
	attribute := Attribute("entityType")
	key := KeyPattern("pk", "TYPE#*#*#{type}")
	for _, tt := range []struct {
		name string
		r    Resolver
		spec recordtest.Spec
		want string
	}{
		{"attribute of the new image", attribute, recordtest.Spec{Old: contact, New: search}, "search"},
		{"attribute, escaped", attribute, recordtest.Spec{New: `{"entityType":{"S":"se\u0061rch"}}`}, "search"},
		{"attribute that went", attribute, recordtest.Spec{Old: search, New: bare}, ""},
		{"attribute of a removed item", attribute, recordtest.Spec{Old: search}, "search"},
		{"attribute of a removed item's keys", attribute, recordtest.Spec{Event: sluice.Remove, Keys: search}, "search"},
		{"attribute of the old image alone", attribute, recordtest.Spec{Event: sluice.Modify, Old: search}, "search"},
		{"no such attribute", attribute, recordtest.Spec{New: bare}, ""},
		{"empty attribute", attribute, recordtest.Spec{New: `{"entityType":{"S":""}}`}, ""},
		{"a removed item has no new image", attribute, recordtest.Spec{Event: sluice.Remove, Old: search, New: contact}, "search"},
		{"key pattern", key, recordtest.Spec{Keys: school, New: search}, "School"},
		{"key pattern of a removed item", key, recordtest.Spec{Keys: school, Event: sluice.Remove}, "School"},
		{"key that does not match", key, recordtest.Spec{}, ""},
		{"key that is no string", KeyPattern("sk", "{type}"), recordtest.Spec{Keys: school}, ""},
		{"no such key", KeyPattern("other", "{type}"), recordtest.Spec{Keys: school}, ""},
		{"table", Table(nil), recordtest.Spec{}, "test"},
		{"type of the table", Table(map[string]string{"test": "order"}), recordtest.Spec{}, "order"},
		{"another table", Table(map[string]string{"orders": "order"}), recordtest.Spec{}, ""},
		{"function", Func(func(rec *sluice.Record) (string, error) { return rec.Region + "!", nil }), recordtest.Spec{}, "us-east-1!"},
		{"by table", ByTable(map[string]Resolver{"test": key, "other": attribute}), recordtest.Spec{Keys: school, New: search}, "School"},
		{"by another table", ByTable(map[string]Resolver{"other": attribute}), recordtest.Spec{New: search}, ""},
		{"chain, first", Chain(attribute, key, Table(nil)), recordtest.Spec{Keys: school, New: search}, "search"},
		{"chain, second", Chain(attribute, key, Table(nil)), recordtest.Spec{Keys: school, New: bare}, "School"},
		{"chain, last", Chain(attribute, key, Table(nil)), recordtest.Spec{New: bare}, "test"},
		{"chain, old image first", Chain(attribute, Table(nil)), recordtest.Spec{Old: search}, "search"},
		{"chain, table last", Chain(attribute, Table(nil)), recordtest.Spec{Event: sluice.Remove}, "test"},
		{"chain of none", Chain(), recordtest.Spec{New: search}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rec := recordtest.New(tt.spec)
			if got, err := tt.r.Type(&rec); got != tt.want || err != nil {
				t.Errorf("type %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestTypeThatIsNoStringIsPermanent(t *testing.T) {
	var unrouted int
	r := New(TypeFrom(Chain(Attribute("entityType"), Table(nil))))
	r.OnUnrouted(func(*sluice.Record, Reason) { unrouted++ })
	r.Handle("*#*", nothing)
	rec := recordtest.New(recordtest.Spec{New: `{"entityType":{"N":"7"}}`, Sequence: "100000000000000000017"})
	routes, err := r.Match(nil, &rec)
	if len(routes) != 0 || !sluice.IsPermanent(err) || unrouted != 0 {
		t.Fatalf("Match = %q, %v", names(routes), err)
	}
	if want := `table test, sequence number 100000000000000000017: type of the record: attribute "entityType" is of type N, want S`; err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestMalformedKeyPattern(t *testing.T) {
	for want, of := range map[string][2]string{"no attribute is named": {"", "{type}"}, "no {type}": {"pk", "x"}} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, want) {
					t.Errorf("KeyPattern(%q) panics with %s, want %s", of, got, want)
				}
			}()
			KeyPattern(of[0], of[1])
		}()
	}
}

func TestUntypedRecords(t *testing.T) {
	var why []Reason
	r := New()
	r.OnUnrouted(func(_ *sluice.Record, w Reason) { why = append(why, w) })
	r.Handle("search#*", nothing)
	for _, spec := range []recordtest.Spec{{New: `{}`}, {New: `{"entityType":{"S":"other"}}`}, {Old: `{}`}} {
		rec := recordtest.New(spec)
		if routes, err := r.Match(nil, &rec); len(routes) != 0 || err != nil {
			t.Errorf("Match = %q, %v", names(routes), err)
		}
	}
	if len(why) != 3 || why[0] != Untyped || why[1] != NoRoute || why[2] != Untyped {
		t.Errorf("unrouted as %v", why)
	}
}
