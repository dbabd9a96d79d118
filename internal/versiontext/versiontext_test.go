package versiontext

import (
	"context"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/handlers/projection"
)

func invalid(v projection.Version) error {
	o := projection.Options{Index: "i", ID: "{pk}", Version: v, UnfencedBackfill: true}
	if v.String() == "BySequence()" {
		o.UnfencedBackfill = false
		o.Current = func(context.Context, *sluice.Record) (sluice.Item, error) { return sluice.Item{}, nil }
	}
	_, err := projection.New(func(context.Context, document.Op) error { return nil }, o)
	return err
}

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"sequence":               "BySequence()",
		"none":                   "Unversioned()",
		"attribute:a:b.c":        `ByAttribute("a:b.c")`,
		"seconds:at":             `ByEpoch("at", 1s)`,
		"millis:at":              `ByEpoch("at", 1ms)`,
		"micros:at":              `ByEpoch("at", 1µs)`,
		"attribute:created,rev":  `ByAttribute("created").Then("rev")`,
		"millis:m.created,m.rev": `ByEpoch("m.created", 1ms).Then("m.rev")`,
	} {
		if v, err := Parse(text); err != nil || v.String() != want || invalid(v) != nil {
			t.Errorf("%s: %v, %v, want %s", text, v, err, want)
		}
	}
	for _, text := range []string{"", "rev", "attribute", "attribute:", "seconds:", "attribute:,rev", "attribute:a,", "attribute:a,b,c", "hours:at", "sequence:x"} {
		if v, err := Parse(text); err == nil {
			t.Errorf("%s: %v", text, v)
		}
	}
	for text, want := range map[string]string{"rev": `ByAttribute("rev")`, "sequence": `ByAttribute("sequence")`, "c,r": `ByAttribute("c").Then("r")`, "seconds:at": `ByEpoch("at", 1s)`} {
		if v, err := ParseAttribute(text); err != nil || v.String() != want {
			t.Errorf("%s: %v, %v, want %s", text, v, err, want)
		}
	}
}
