package cascade

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/internal/outcomes"
)

// failing makes the deletes of rows fail as say says.
func (w *world) failing(say func(id string) error) {
	w.onDelete = func(_ string, keys []sluice.Item) []error {
		errs := make([]error, len(keys))
		for i, key := range keys {
			id, _ := key.Lookup("point_id")
			errs[i] = say(id.Str())
		}
		return errs
	}
}

func TestDeletesThatFail(t *testing.T) {
	throttled, bad := errors.New("throttled"), sluice.Permanent(errors.New("no such key schema"))
	for _, tt := range []struct {
		name      string
		say       func(id string) error
		left      int
		permanent bool
		want      string
	}{
		{"one for now", func(id string) error {
			if id == "p-000007" {
				return throttled
			}
			return nil
		}, 1, false, `cascade of KEY: 1 of 300 deletes in table points failed, the first that may succeed later of KEY: throttled`},
		{"one for good", func(id string) error {
			if id == "p-000007" {
				return bad
			}
			return nil
		}, 1, true, `1 of 300 deletes in table points failed, the first of KEY: no such key schema`},
		{"both kinds", func(id string) error {
			switch id {
			case "p-000007":
				return bad
			case "p-000280":
				return throttled
			}
			return nil
		}, 2, false, `2 of 300 deletes in table points failed, 1 of them for good (the first: no such key schema), the first that may succeed later of KEY: throttled`},
		{"all", func(string) error { return throttled }, 300, false, `300 of 300 deletes in table points failed`},
		{"all for good", func(string) error { return bad }, 300, true, `300 of 300 deletes in table points failed`},
	} {
		for _, way := range []string{"remove", "work"} {
			w := points(300)
			w.failing(tt.say)
			c := w.config()
			c.Threshold, c.PageSize, w.inFlight = DefaultThreshold, 100, 1
			x := must(t, c)
			var err error
			if way == "remove" {
				err = x.Remove(t.Context(), mapRemoved())
			} else {
				err = x.Work(t.Context(), record(sluice.Message{Body: body}))
			}
			if err == nil || !strings.Contains(withoutHashes(err), tt.want) {
				t.Errorf("%s: %v\nwant %s", tt.name, err, tt.want)
			}
			if sluice.IsPermanent(err) != tt.permanent || sluice.IsSkip(err) {
				t.Errorf("%s: permanent %v", tt.name, sluice.IsPermanent(err))
			}
			if w.left(t) != tt.left || len(w.queue) != 0 {
				t.Errorf("%s: %d left, sent %q", tt.name, w.left(t), bodies(w))
			}
		}
	}
}

// The sink's RetryAfter reaches the flow.
func TestRetryAfterOfTheSink(t *testing.T) {
	w := points(3)
	w.failing(func(string) error { return sluice.RetryAfter(time.Minute, errors.New("throttled")) })
	err := must(t, w.config()).Work(t.Context(), record(sluice.Message{Body: body}))
	var after *outcomes.Retry
	if !errors.As(err, &after) || after.After != time.Minute {
		t.Error(err)
	}
}

// When nothing succeeds any more, a run does not try a million rows.
func TestGivesUpWhenAllFails(t *testing.T) {
	const rows = 5000
	w := points(rows)
	tried := 0
	w.failing(func(string) error { tried++; return errors.New("down") })
	c := w.config()
	c.PageSize = 500
	err := must(t, c).Work(t.Context(), record(sluice.Message{Body: body}))
	if err == nil || !strings.Contains(err.Error(), "down") {
		t.Error(err)
	}
	if tried < tooMany || tried > tooMany+17*requestRows {
		t.Errorf("%d deletes were tried", tried)
	}
}

// A row that can never be deleted does not end a long cascade early. Each message
// deletes the other rows, and the last message reports the row.
func TestOneBadRowDoesNotHoldTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := points(1000)
		w.took = time.Second
		bad := sluice.Permanent(errors.New("refused"))
		w.failing(func(id string) error {
			if id == "p-000001" {
				return bad
			}
			return nil
		})
		c := w.config()
		c.Budget, w.inFlight, c.PageSize = 20*time.Second, 1, 200
		x := must(t, c)
		x.Remove(t.Context(), mapRemoved())
		messages := 0
		for {
			messages++
			_, err := w.deliver(t.Context(), x.Work)
			if err == nil {
				continue
			}
			if !sluice.IsPermanent(err) || !errors.Is(err, bad) {
				t.Error(err)
			}
			break
		}
		if w.left(t) != 1 || messages < 3 {
			t.Errorf("%d left after %d messages", w.left(t), messages)
		}
	})
}

func TestCallsThatFail(t *testing.T) {
	down := errors.New("down")
	for name, change := range map[string]func(*Config){
		"cascade of KEY: is the parent there again? down": func(c *Config) {
			c.Get = func(context.Context, string, sluice.Item) (sluice.Item, error) { return sluice.Item{}, down }
		},
		"cascade of KEY: reading the keys of table points: down": func(c *Config) {
			c.Query = func(context.Context, dynamo.Query) (dynamo.Page, error) { return dynamo.Page{}, down }
		},
		"sweep of KEY in table points: sending the message: down": func(c *Config) {
			c.Send = func(context.Context, sluice.Message) error { return down }
		},
	} {
		w := points(3)
		c := w.config()
		change(&c)
		err := must(t, c).Work(t.Context(), record(sluice.Message{Body: body}))
		if err == nil || withoutHashes(err) != name || sluice.IsPermanent(err) {
			t.Errorf("%v\nwant %s", err, name)
		}
	}
	w := points(3)
	c := w.config()
	c.Send = func(context.Context, sluice.Message) error { return down }
	if err := must(t, c).Remove(t.Context(), mapRemoved()); !errors.Is(err, down) || !strings.HasPrefix(err.Error(), "hand-over of") {
		t.Error(err)
	}
}

// A panic in a function of the configuration is the record's error, not the end of the
// process.
func TestPanicsAreErrors(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"exclude": func(c *Config) { c.Children[0].Exclude = func(sluice.Item) bool { panic("oh") } },
		"query":   func(c *Config) { c.Query = func(context.Context, dynamo.Query) (dynamo.Page, error) { panic("oh") } },
		"hook": func(c *Config) {
			c.Every = 1
			c.Progress = func(p Progress) {
				if !p.Done {
					panic("oh")
				}
			}
		},
		"delete": func(c *Config) { c.Delete = func(context.Context, dynamo.GuardedDelete) { panic("oh") } },
	} {
		w := points(30)
		c := w.config()
		change(&c)
		err := must(t, c).Work(t.Context(), record(sluice.Message{Body: body}))
		var p *outcomes.Panic
		if !errors.As(err, &p) || p.Value != "oh" || !strings.Contains(string(p.Stack), "failures_test.go") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Rows without the key that Config names are an error, not skipped.
func TestWrongKeyOfChildren(t *testing.T) {
	w := points(3)
	c := w.config()
	c.Children[0].Key = []string{"map_id", "id"}
	err := must(t, c).Work(t.Context(), record(sluice.Message{Body: body}))
	if !sluice.IsPermanent(err) || !strings.Contains(err.Error(), `an item of table points has no attribute "id"`) {
		t.Error(err)
	}
}

// Rows that come as fast as they go do not keep a message for ever.
func TestChildrenThatKeepComing(t *testing.T) {
	for _, threshold := range []int{0, DefaultThreshold, Unlimited} {
		synctest.Test(t, func(t *testing.T) {
			w := points(3)
			w.onDelete = func(_ string, keys []sluice.Item) []error { return make([]error, len(keys)) }
			again := 0
			w.onQuery = func(dynamo.Query) {
				w.mu.Lock()
				defer w.mu.Unlock()
				again++
				w.tables["points"].put(point("m-1", again))
			}
			c := w.config()
			c.Threshold = threshold
			x := must(t, c)
			var err error
			if threshold == 0 {
				err = x.Work(t.Context(), record(sluice.Message{Body: body}))
			} else {
				err = x.Remove(t.Context(), mapRemoved())
			}
			if threshold == Unlimited {
				if err == nil || !strings.Contains(err.Error(), "as fast as they are deleted") || sluice.IsPermanent(err) {
					t.Error(err)
				}
				return
			}
			if got := bodies(w); err != nil || len(got) != 1 || got[0] != "0s "+body {
				t.Errorf("%v, sent %q", err, got)
			}
		})
	}
}

// If some kinds of children fail, the others are deleted. The error is permanent only
// if every failure is.
func TestKindsThatFail(t *testing.T) {
	for _, tt := range []struct {
		first, second error
		permanent     bool
	}{
		{errors.New("down"), nil, false},
		{nil, errors.New("down"), false},
		{sluice.Permanent(errors.New("bad")), errors.New("down"), false},
		{errors.New("down"), sluice.Permanent(errors.New("bad")), false},
		{sluice.Permanent(errors.New("bad")), sluice.Permanent(errors.New("worse")), true},
	} {
		w := one()
		w.tables["one"].set(search, sluice.Item{})
		c := w.one(
			Child{Partition: Attr{Name: "PK", From: "PK"}, Sort: Attr{Name: "SK", Before: "attempt#"}},
			Child{Name: "notes", Partition: Attr{Name: "PK", From: "PK"}, Sort: Attr{Name: "SK", Before: "note#"}},
			Child{Name: "log", Partition: Attr{Name: "PK", From: "PK"}, Sort: Attr{Name: "SK", Before: "log"}},
		)
		w.onDelete = func(_ string, keys []sluice.Item) []error {
			sk, _ := keys[0].Lookup("SK")
			switch {
			case strings.HasPrefix(sk.Str(), "attempt"):
				return slices.Repeat([]error{tt.first}, len(keys))
			case strings.HasPrefix(sk.Str(), "note"):
				return slices.Repeat([]error{tt.second}, len(keys))
			}
			return nil
		}
		err := must(t, c).Remove(t.Context(), removed("one", search, search))
		if err == nil || sluice.IsPermanent(err) != tt.permanent {
			t.Errorf("%v, %v: %v", tt.first, tt.second, err)
		}
		for _, want := range []error{tt.first, tt.second} {
			if want != nil && !strings.Contains(fmt.Sprint(err), want.Error()) {
				t.Errorf("%v does not say %v", err, want)
			}
		}
		if _, there := w.tables["one"].rows[`{"PK":{"S":"s-1"},"SK":{"S":"log"}}`]; there {
			t.Error("the third kind was not deleted")
		}
	}
}

var hashes = regexp.MustCompile(`\(key hash [0-9a-f]{16}\)`)

// withoutHashes has KEY for each hash of a key, which differs from run to run.
func withoutHashes(err error) string { return hashes.ReplaceAllString(err.Error(), "KEY") }
