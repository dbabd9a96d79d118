package projection

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/streamtest"
)

func TestVersionsOfTimes(t *testing.T) {
	const noon = 1751632401 * int64(time.Second) // 2025-07-04T12:33:21Z
	for text, want := range map[string]int64{
		"2025-07-04T12:33:21Z":               noon,
		"2025-07-04T12:33:21.123Z":           noon + 123_000_000,
		"2025-07-04T12:33:21,123456789Z":     noon + 123_456_789,
		"2025-07-04T12:33:21.1234567891234Z": noon + 123_456_789,
		"2025-07-04t12:33:21z":               noon,
		"2025-07-04 12:33:21+00:00":          noon,
		"2025-07-04T14:33:21.5+02:00":        noon + 500_000_000,
		"2025-07-04T14:33:21+0200":           noon,
		"2025-07-04T14:33:21+02":             noon,
		"2025-07-04T12:33:21.000001":         noon + 1_000,
		"2025-07-04T12:33Z":                  noon - 21*int64(time.Second),
		"20250704T123321.5Z":                 noon + 500_000_000,
		"20250704T143321+0200":               noon,
		"20250704T123321":                    noon,
		"1970-01-01T00:00:00Z":               0,
		"2262-04-11T23:47:16.854775807Z":     math.MaxInt64,
	} {
		got, err := ByAttribute("at").ofImage(item.Of(item.String("at", text)))
		if got != want || err != nil {
			t.Errorf("%s: %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "2025-07-04", "secret", "1751632401", "1969-12-31T23:59:59Z", "2262-04-11T23:47:17Z", "9999-12-31T00:00:00Z", "12:33:21", "2025-13-04T12:33:21Z"} {
		_, err := ByAttribute("at").ofImage(item.Of(item.String("at", text)))
		if err == nil || !strings.Contains(err.Error(), `attribute "at" is of type S, want `) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestVersionsOfEpochs(t *testing.T) {
	const noon = 1751632401 * int64(time.Second)
	for _, tt := range []struct {
		unit time.Duration
		text string
		want int64 // -1: none
	}{
		{time.Second, "1751632401", noon},
		{time.Second, "1751632401.123456", noon + 123_456_000},
		{time.Second, "1.751632401123456789987E9", noon + 123_456_789},
		{time.Millisecond, "1751632401123", noon + 123_000_000},
		{time.Millisecond, "1751632401123.25", noon + 123_250_000},
		{time.Microsecond, "1751632401123456.5", noon + 123_456_500},
		{time.Second, "0", 0},
		{time.Second, "9223372036.854775807", math.MaxInt64},
		{time.Second, "9223372036.854775808", -1},
		{time.Second, "-0.0000000001", -1},
		{time.Second, "-1", -1},
		{time.Second, "1E125", -1},
	} {
		got, err := ByEpoch("at", tt.unit).ofImage(item.Of(item.Number("at", tt.text)))
		if tt.want < 0 && err == nil || tt.want >= 0 && (got != tt.want || err != nil) {
			t.Errorf("%s of %v: %d, %v, want %d", tt.text, tt.unit, got, err, tt.want)
		}
	}
	// A number with a fraction is a time only if the unit is said, and then a text is none.
	if _, err := ByAttribute("at").ofImage(item.Of(item.Number("at", "1751632401.5"))); err == nil || !strings.Contains(err.Error(), "unit") {
		t.Error(err)
	}
	if _, err := ByEpoch("at", time.Second).ofImage(item.Of(item.String("at", "2025-07-04T12:33:21Z"))); err == nil || !strings.Contains(err.Error(), "want N") {
		t.Error(err)
	}
	if _, err := New(nil, Options{Index: "i", ID: "{pk}", Version: ByEpoch("at", time.Minute)}); err == nil || !strings.Contains(err.Error(), "unit 1m0s") {
		t.Error(err)
	}
}

// An item that is made again restarts its counter, and its document is written.
func TestVersionsOfPairs(t *testing.T) {
	state := func(created string, rev int) map[string]any {
		return map[string]any{"pk": "a", "created": created, "rev": rev}
	}
	const first, second = "2025-07-04T12:33:21.122Z", "2025-07-04T12:33:21.123Z"
	made := streamtest.Insert("t", state(first, 1))
	changed := streamtest.Modify("t", state(first, 1), state(first, 7))
	removed := streamtest.Remove("t", state(first, 7))
	again := streamtest.Insert("t", state(second, 1))
	p := must(t, nil, Options{Index: "i", ID: "{pk}", Version: ByAttribute("created").Then("rev")})
	last := int64(-1)
	for _, rec := range []*sluice.Record{&made, &changed, &removed, &again} {
		ops, err := p.Project(rec)
		if err != nil || ops[0].Fence != document.Newer || ops[0].Version <= last {
			t.Fatalf("%+v, %v, want a version above %d", ops, err, last)
		}
		last = ops[0].Version
	}
	if want := int64(1751632401123)<<20 | 1; last != want {
		t.Errorf("version %d, want %d", last, want)
	}
	for _, tt := range []struct {
		version      Version
		created, rev item.Attribute
		want         int64 // -1: refused
	}{
		{ByAttribute("c").Then("r"), item.Number("c", "5"), item.Number("r", "3"), 5<<20 | 3},
		{ByAttribute("c").Then("r"), item.Number("c", "8796093022207"), item.Number("r", "1048575"), math.MaxInt64},
		{ByAttribute("c").Then("r"), item.Number("c", "8796093022208"), item.Number("r", "1"), -1},
		{ByAttribute("c").Then("r"), item.Number("c", "5"), item.Number("r", "1048576"), -1},
		{ByAttribute("c").Then("r"), item.Number("c", "5"), item.String("r", first), -1},
		{ByAttribute("c").Then("r"), item.Number("c", "5"), item.Number("r", "-1"), -1},
		{ByAttribute("c").Then("r"), item.Number("c", "5"), item.Number("other", "1"), -1},
		{ByEpoch("c", time.Second).Then("r"), item.Number("c", "1751632401.1239"), item.Number("r", "2"), 1751632401123<<20 | 2},
		{ByEpoch("c", time.Microsecond).Then("r"), item.Number("c", "1751632401123999"), item.Number("r", "2"), 1751632401123<<20 | 2},
	} {
		got, err := tt.version.ofImage(item.Of(tt.created, tt.rev))
		if tt.want < 0 && err == nil || tt.want >= 0 && (got != tt.want || err != nil) {
			t.Errorf("%v of %v and %v: %d, %v, want %d", tt.version, tt.created, tt.rev, got, err, tt.want)
		}
	}
	if _, err := New(nil, Options{Index: "i", ID: "{pk}", Version: BySequence().Then("rev")}); err == nil {
		t.Error("a pair by sequence")
	}
}
