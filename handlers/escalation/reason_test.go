package escalation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/item"
)

// An attempt keeps why its step has failed or was skipped, where Claim.Error names
// the attribute.
func TestAttemptKeepsTheError(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error // of Contact
		gone bool
		want string
	}{
		"contacted":  {nil, false, ""},
		"failed":     {sluice.Permanent(errors.New("no such number")), false, "no such number"},
		"long":       {sluice.Permanent(errors.New(strings.Repeat("x", 1023) + "ü")), false, strings.Repeat("x", 1023)},
		"skipped":    {sluice.Skip("asleep"), false, "skipped: asleep"},
		"step gone":  {nil, true, errNoStep.Error()},
		"no attempt": {errors.New("busy"), false, ""}, // it is tried again
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newRota(t)
				w.edit = func(c *ConsumerConfig) { c.Claim.Error = "why" }
				w.contact = func(context.Context, Try) error { return tt.err }
				if tt.gone {
					w.Write(t.Context(), dynamo.Delete("people", item.Of(item.String("team", "T1"), item.String("person", "ann"))))
				}
				_ = w.consumer(t).Try(t.Context(), ring()) // its outcome is TestTry's
				why, kept := parse(w.rings()).Lookup("why")
				if why.Str() != tt.want || kept != (tt.want != "") {
					t.Errorf("attempt %s", w.rings())
				}
			})
		})
	}
}

// An attempt with several contacts keeps their errors only if it reached nobody.
func TestAttemptKeepsTheErrorsOfContacts(t *testing.T) {
	for reached, want := range map[string]string{"ann": "", "nobody": "no such number"} {
		t.Run(reached, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newRota(t)
				w.put(t, "people", strings.Replace(inTeam("ann", 1, 0), "{", `{"contacts":{"SS":["ann","bob"]},`, 1))
				w.edit = func(c *ConsumerConfig) { c.Claim.Error, c.Config.Step.Contacts = "why", "contacts" }
				w.contact = func(_ context.Context, t Try) error {
					if t.Contact == reached {
						return nil
					}
					return sluice.Permanent(errors.New("no such number"))
				}
				if err := w.consumer(t).Try(t.Context(), ring()); err != nil {
					t.Fatal(err)
				}
				why, _ := parse(w.rings()).Lookup("why")
				if got, _, _ := strings.Cut(fmt.Sprint(why.Str()), "\n"); got != want {
					t.Errorf("attempt %s", w.rings())
				}
			})
		})
	}
}
