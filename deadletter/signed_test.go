package deadletter

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/access"
	"github.com/sluicehq/sluice/internal/letterkeys"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/state"
)

// signed is a store whose letters others may write.
type signed struct {
	state.Letters
	letterkeys.Keys
}

func letterKeys(t *testing.T) letterkeys.Keys {
	t.Helper()
	k, err := letterkeys.Find(func(name string) string {
		return map[string]string{access.LetterKeyEnv: "0123456789abcdef0123456789abcdef"}[name]
	}, "")
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// A letter that a program without the key has made is run only by its name, and
// what becomes of it is not signed in its place.
func TestForgedLetter(t *testing.T) {
	letters := state.NewMemory()
	plain, signed := NewBox(letters, "app"), NewBox(signed{letters, letterKeys(t)}, "app")
	forged := park(t, plain, record("a", 10), "")
	good := park(t, signed, record("b", 11), "r")
	later := park(t, signed, record("a", 12), "r") // of the item of the forged one
	c := calls{answer: func(*sluice.Record) error { return errors.New("down") }}
	m := router.New()
	m.Handle("*#*", c.handle, router.Name("r"), router.Redrive())
	m.Handle("*#*", c.handle, router.Name("s"), router.Redrive())

	for _, how := range []How{{}, {Force: true}, {DryRun: true}, {Unsigned: []string{good}}, {Allow: []string{"r", "s"}}} {
		if err := signed.Redrive(t.Context(), m, forged, how); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "it is not signed") || !strings.Contains(err.Error(), "--unsigned "+forged) {
			t.Errorf("%+v: %v", how, err)
		}
	}
	if err := signed.Redrive(t.Context(), m, later, How{Earlier: true}); !errors.Is(err, ErrRefused) {
		t.Errorf("as an earlier change: %v", err)
	}
	if r, err := signed.RedriveAll(t.Context(), m, Filter{}, How{Force: true, DryRun: true}); r.Failed != 1 || r.WouldRun != 2 {
		t.Errorf("with all: %+v, %v", r, err)
	}
	if c.got != nil {
		t.Fatalf("it ran: %v", c.got)
	}

	// One for all routes becomes one for each that failed.
	how := How{Unsigned: []string{forged}}
	if err := signed.Redrive(t.Context(), m, forged, how); err == nil || len(c.got) != 2 {
		t.Fatalf("by its name: %v, %v", err, c.got)
	}
	if err := signed.Redrive(t.Context(), m, good, How{}); err == nil || errors.Is(err, ErrRefused) {
		t.Fatalf("a signed one: %v", err)
	}
	unsigned := 0
	if err := signed.All(t.Context(), Filter{}, func(e Entry) error {
		if e.Unverified != "" {
			unsigned++
		} else if e.ID != good && e.ID != later {
			t.Errorf("%s was signed, and replaced an unsigned letter", e.ID)
		}
		return nil
	}); err != nil || unsigned != 2 {
		t.Errorf("%d are not signed: %v", unsigned, err)
	}
	if e, err := signed.Get(t.Context(), good); err != nil || e.Redrives != 1 || e.Unverified != "" {
		t.Errorf("what failed again: %+v, %v", e, err)
	}
}

// What is made to fit is signed as it is sent.
func TestSignedLetterThatFits(t *testing.T) {
	k := letterKeys(t)
	const most = 20 << 10
	var sent []byte
	s := Sender(func(_ context.Context, _ Entry, data []byte) error {
		sent = k.Sign(data)
		return nil
	}).AtMost(most - letterkeys.SignatureBytes)
	for _, size := range []int{100, 15 << 10, 200 << 10} {
		if err := s.Park(t.Context(), big(size), failure("r")); err != nil {
			t.Fatal(err)
		}
		if err := k.Verify(sent); err != nil || len(sent) > most {
			t.Errorf("%d bytes of a record of %d: %v", len(sent), size, err)
		}
	}
}

// A letter that nobody has signed is known by what a redrive would act on.
func TestContentID(t *testing.T) {
	of := func(e Entry) string {
		t.Helper()
		id, err := e.ContentID()
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	rec := recordtest.New(recordtest.Spec{Keys: `{"pk":{"S":"a"}}`, New: `{"pk":{"S":"` + strings.Repeat("a", 20<<10) + `"}}`, Sequence: recordtest.Sequence(10)})
	e := newEntry(&rec, failure("r"), failure("r").LastAt)
	id := of(e)
	if fence, _, _ := strings.Cut(e.ID, "-"); !strings.HasPrefix(id, fence+"-") || len(id) != len(e.ID)+16 {
		t.Errorf("%s is not in the place of %s, with a hash twice as long", id, e.ID)
	}
	packed := fit(t, e, 17<<10)
	for name, same := range map[string]func(*Entry){
		"id":         func(e *Entry) { e.ID = "x" },
		"errors":     func(e *Entry) { e.First.Error, e.Last.Details = "x", []map[string]string{{"a": "b"}} },
		"times":      func(e *Entry) { e.ParkedAt, e.Last.At = e.ParkedAt.Add(1), e.Last.At.Add(1) },
		"failures":   func(e *Entry) { e.Attempts++; e.Redrives++ },
		"compressed": func(e *Entry) { *e = packed },
	} {
		other := e
		if same(&other); of(other) != id {
			t.Errorf("it depends on: %s", name)
		}
	}
	for name, differs := range map[string]func(*Entry){
		"record":    func(e *Entry) { e.Raw = bytes.Replace(e.Raw, []byte("aaa"), []byte("aab"), 1) },
		"route":     func(e *Entry) { e.Route = "s" },
		"table":     func(e *Entry) { e.Table = "other" },
		"stream":    func(e *Entry) { e.StreamARN += "x" },
		"shard":     func(e *Entry) { e.ShardID += "x" },
		"sequence":  func(e *Entry) { e.Sequence = recordtest.Sequence(11) },
		"event id":  func(e *Entry) { e.EventID += "x" },
		"event":     func(e *Entry) { e.EventName = sluice.Snapshot },
		"origin":    func(e *Entry) { e.Origin = sluice.Backfilled },
		"reference": func(e *Entry) { e.Raw, e.Ref = nil, &Reference{Keys: e.Record().Keys, Bytes: 1} },
		"gap":       func(e *Entry) { e.Raw, e.Gap = nil, &sluice.Gap{} },
	} {
		other := e
		if differs(&other); of(other) == id {
			t.Errorf("it does not depend on the %s", name)
		}
	}
}
