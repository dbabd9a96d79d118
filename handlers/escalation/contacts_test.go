package escalation

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
)

// several is a rota whose step ann has two contacts.
func several(t *testing.T, list string) *rota {
	w := newRounds(t)
	w.put(t, "people", strings.Replace(inTeam("ann", 1, 0), "{", `{"contacts":`+list+`,`, 1))
	w.edit = func(c *ConsumerConfig) { c.Config.Step.Contacts = "contacts" }
	return w
}

// All contacts of a step are called at the same time, each with its own key. Only
// temporarily failing contacts are called again.
func TestContacts(t *testing.T) {
	busy, refused := errors.New("busy"), sluice.Permanent(errors.New("no such number"))
	for _, tt := range []struct {
		name     string
		results  map[string][]error // of the calls of a contact, one after another
		late     bool               // the step is given up at its first failure
		tries    int
		contacts string
		outcome  string
	}{
		{"both reached", nil, false, 1, `{"a@x":{"S":"contacted"},"b#1":{"S":"contacted"}}`, "contacted"},
		{"one refused", map[string][]error{"b#1": {refused}}, false, 1, `{"a@x":{"S":"contacted"},"b#1":{"S":"failed"}}`, "contacted"},
		{"one passed over", map[string][]error{"a@x": {sluice.Skip("asleep")}, "b#1": {refused}}, false, 1, `{"a@x":{"S":"skipped"},"b#1":{"S":"failed"}}`, "failed"},
		{"both passed over", map[string][]error{"a@x": {sluice.Skip("asleep")}, "b#1": {sluice.Skip("asleep")}}, false, 1, `{"a@x":{"S":"skipped"},"b#1":{"S":"skipped"}}`, "skipped"},
		{"one busy twice", map[string][]error{"b#1": {busy, busy}}, false, 3, `{"a@x":{"S":"contacted"},"b#1":{"S":"contacted"}}`, "contacted"},
		{"both busy", map[string][]error{"a@x": {sluice.RetryAfter(time.Minute, busy)}, "b#1": {busy, refused}}, false, 2, `{"a@x":{"S":"contacted"},"b#1":{"S":"failed"}}`, "contacted"},
		{"given up", map[string][]error{"b#1": {busy}}, true, 1, `{"a@x":{"S":"contacted"},"b#1":{"S":"failed"}}`, "contacted"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := several(t, `{"L":[{"S":"a@x"},{"S":"b#1"},{"S":"a@x"}]}`)
				var mu sync.Mutex
				var keys []string
				failing := map[string][]error{}
				for contact, errs := range tt.results {
					failing[contact] = slices.Clone(errs)
				}
				started := map[string]time.Time{}
				w.contact = func(_ context.Context, try Try) error {
					mu.Lock()
					keys = append(keys, try.DedupeKey)
					started[try.Contact] = w.Now()
					var err error
					if left := failing[try.Contact]; len(left) > 0 {
						err, failing[try.Contact] = left[0], left[1:]
					}
					mu.Unlock()
					time.Sleep(time.Second) // one does not wait for the other
					return err
				}
				rec := ring()
				if tt.late {
					rec = ring("2024-05-01T10:00:00Z", "2024-05-01T09:50:00Z")
				}
				c := w.consumer(t)
				tries := 0
				for err := errors.New(""); err != nil && tries < 9; tries++ {
					if err = c.Try(t.Context(), rec); err != nil && !strings.Contains(err.Error(), "busy") {
						t.Fatal(err)
					}
				}
				if tries != tt.tries || started["a@x"].After(start.Add(time.Duration(tries-1)*time.Second)) {
					t.Errorf("%d tries, started %v", tries, started)
				}
				got := w.rings()
				if !strings.Contains(got, `"contacts":{"M":`+tt.contacts+`}`) || !strings.Contains(got, `"outcome":{"S":"`+tt.outcome+`"}`) {
					t.Errorf("attempt %s", got)
				}
				want := 2
				for _, errs := range tt.results { // a call for each failure that was repeated
					for _, err := range errs {
						if !tt.late && !sluice.IsPermanent(err) && !sluice.IsSkip(err) {
							want++
						}
					}
				}
				slices.Sort(keys)
				if len(keys) != want || keys[0] != "P1#0/a%40x" || keys[len(keys)-1] != "P1#0/b%231" {
					t.Errorf("keys %q, want %d", keys, want)
				}
			})
		})
	}
}

// A step without a contact to call is a bad step.
func TestStepsWithoutContacts(t *testing.T) {
	for list, want := range map[string]string{
		`{"L":[]}`:              `step KEY: attribute "contacts" is empty`,
		`{"S":"a"}`:             `step KEY: attribute "contacts" is of type S, want L or SS`,
		`{"L":[{"N":"1"}]}`:     `step KEY: attribute "contacts" has an element that is no text`,
		`{"SS":["a","b"]}`:      "",
		`{"L":[{"S":""}]}`:      `step KEY: attribute "contacts" has an element that is no text`,
		`{"L":[{"S":"a"}]}`:     "",
		`{"M":{"a":{"S":"b"}}}`: `step KEY: attribute "contacts" is of type M, want L or SS`,
	} {
		synctest.Test(t, func(t *testing.T) {
			w := several(t, list)
			var problems []string
			w.edit = func(c *ConsumerConfig) {
				c.Config.Step.Contacts = "contacts"
				c.Config.Problem = func(_ context.Context, _ Escalation, err error) { problems = append(problems, err.Error()) }
			}
			e, err := New(w.config().Config)
			if err != nil {
				t.Fatal(err)
			}
			err = e.Start(t.Context(), opened())
			first := "ann"
			if want != "" {
				first, want = "bob", "ladder KEY: item 1 of 4: "+want
			}
			if err != nil || len(w.sent()) != 1 || !strings.Contains(w.sent()[0].Body, first) || withoutHashes(strings.Join(problems, "\n")) != want {
				t.Errorf("%s: %v, sent %+v, %q", list, err, w.sent(), problems)
			}
		})
	}
}

// A step without contacts is one contact, also where others have several.
func TestStepThatIsOneContact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := losing(t, func(w *rota) {
			w.put(t, "people", strings.Replace(inTeam("ann", 1, 0), "{", `{"contacts":{"SS":["ann","eve"]},`, 1))
			w.edit = func(c *ConsumerConfig) { c.Config.Step.Contacts = "contacts" }
		}, func(string) bool { return false })
		slices.Sort(w.calls)
		if got, want := strings.Join(w.calls, ", "), "10:00:00 P1#0/ann ann, 10:00:00 P1#0/eve ann, 10:01:00 P1#1 bob, 10:21:00 P1#2 cat"; got != want {
			t.Errorf("calls %s, want %s", got, want)
		}
	})
}
