package router

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/item"
)

// A route for a type that only attributes tell could never match on a stream
// without the images that hold them.
func TestTypesNeedImages(t *testing.T) {
	var (
		attribute = Attribute("entityType")
		key       = KeyPattern("pk", "{type}#**")
		function  = Func(func(*sluice.Record) (string, error) { return "a", nil })
	)
	for _, tt := range []struct {
		pattern string
		types   Resolver
		option  Option
		want    item.View
	}{
		{"a#INSERT", attribute, nil, item.NewImage},
		{"a#MODIFY", attribute, nil, item.AnyImage},
		{"a#REMOVE", attribute, nil, item.OldImage},
		{"a#*", attribute, nil, item.BothImages | item.AnyImage},
		{"a#SNAPSHOT", attribute, nil, item.KeysOnly},
		{"*#REMOVE", attribute, nil, item.KeysOnly},
		{"*#INSERT a#REMOVE", attribute, nil, item.OldImage},
		{"a#INSERT", attribute, NeedsOld(), item.BothImages},
		{"a#REMOVE", Chain(attribute, Attribute("kind")), nil, item.OldImage},
		{"a#REMOVE", Chain(attribute, key), nil, item.KeysOnly},
		{"a#REMOVE", Chain(attribute, Table(nil)), nil, item.KeysOnly},
		{"a#REMOVE", Chain(), nil, item.KeysOnly},
		{"a#REMOVE", key, nil, item.KeysOnly},
		{"a#REMOVE", function, nil, item.KeysOnly},
		{"a#REMOVE", ByTable(map[string]Resolver{"test": attribute}), nil, item.KeysOnly},
		{"*#REMOVE", key, Regions("eu-west-1"), item.OldImage},
		{"*#MODIFY", key, Regions("eu-west-1"), item.AnyImage},
	} {
		r := New(TypeFrom(tt.types))
		option := tt.option
		if option == nil {
			option = Name("route")
		}
		r.Handle(tt.pattern, nothing, option)
		if got := r.Routes()[0].Needs; got != tt.want {
			t.Errorf("%s of %+v needs %d, want %d", tt.pattern, tt.types, got, tt.want)
		}
	}
}

// A record whose type is unknown because of a missing image is not unrouted.
func TestRecordWithoutTheImageOfItsType(t *testing.T) {
	const search = `{"pk":{"S":"a"},"entityType":{"S":"search"}}`
	attribute := Attribute("entityType")
	for _, tt := range []struct {
		name  string
		types Resolver
		spec  recordtest.Spec
		want  string
	}{
		{"INSERT", attribute, recordtest.Spec{Event: sluice.Insert, ViewType: "KEYS_ONLY"}, "INSERT record came without one"},
		{"MODIFY", attribute, recordtest.Spec{Event: sluice.Modify, ViewType: "KEYS_ONLY"}, `the record says "KEYS_ONLY"`},
		{"REMOVE", attribute, recordtest.Spec{Event: sluice.Remove, ViewType: "NEW_IMAGE"}, "NEW_AND_OLD_IMAGES"},
		{"by table", ByTable(map[string]Resolver{"test": attribute}), recordtest.Spec{Event: sluice.Remove}, "REMOVE"},
		{"another table", ByTable(map[string]Resolver{"other": attribute}), recordtest.Spec{Event: sluice.Remove}, ""},
		{"the type is in the keys", attribute, recordtest.Spec{Event: sluice.Remove, Keys: search}, ""},
		{"an image without the type", attribute, recordtest.Spec{Old: `{}`}, ""},
		{"misstated view", attribute, recordtest.Spec{Old: search, ViewType: "KEYS_ONLY"}, ""},
	} {
		r := New(TypeFrom(tt.types))
		r.Handle("search#*", nothing)
		rec := recordtest.New(tt.spec)
		_, err := r.Match(nil, &rec)
		if sluice.IsPermanent(err) != (tt.want != "") || !strings.Contains(fmt.Sprint(err), tt.want) && tt.want != "" {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
	r := New()
	r.Handle("search#INSERT *#REMOVE", nothing)
	rec := recordtest.New(recordtest.Spec{Event: sluice.Remove})
	if routes, err := r.Match(nil, &rec); len(routes) != 1 || err != nil {
		t.Errorf("where the type does not matter: Match = %q, %v", names(routes), err)
	}
}

// The images have the Region of a change. Without them, every change would count as
// made in the stream's own Region.
func TestRegionsWithoutImages(t *testing.T) {
	r := New(TypeFrom(Table(nil)))
	r.Handle("*#*", nothing, Regions("us-east-1"))
	for _, event := range []sluice.EventName{sluice.Insert, sluice.Modify, sluice.Remove} {
		rec := recordtest.New(recordtest.Spec{Event: event, ViewType: "KEYS_ONLY"})
		if routes, err := r.Match(nil, &rec); !sluice.IsPermanent(err) {
			t.Errorf("%s: Match = %q, %v", event, names(routes), err)
		}
	}
}

// A backfill asks for its routes: those with SNAPSHOT in their pattern.
func TestSnapshotRoutes(t *testing.T) {
	r := New()
	for _, patterns := range []string{"a#*", "*#*", "a#INSERT a#MESSAGE", "a#SNAPSHOT", "*#SNAPSHOT", "a#INSERT b#SNAPSHOT"} {
		r.Handle(patterns, nothing)
	}
	var got []string
	for _, rt := range r.Routes() {
		if rt.Snapshot {
			got = append(got, rt.Name)
		}
	}
	if want := "[a#SNAPSHOT *#SNAPSHOT a#INSERT,b#SNAPSHOT]"; fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
}
