package manhunt

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"regexp"
	"testing"
	"testing/synctest"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/item"
)

// Log and logged errors have no ids and no contents of items.
func TestNothingOfItemsIsLogged(t *testing.T) {
	secret := regexp.MustCompile(`a271244|89fa8f8|db3280c|538235b|Zavier|example\.com|5550100|I-1`)
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, "19:32:15")
		var log bytes.Buffer
		attempts := w.Queue("attempts")
		lost := false
		r, err := NewRouter(Deps{
			Store: w.World, Watch: w.Queue("watch"), Notify: w.Queue("reflex"), Now: w.Now, Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Send: func(ctx context.Context, m sluice.Message) error {
				if m.Kind() == "manhunt.attempt" && !lost { // so that there is an alarm
					lost = true
					return nil
				}
				return attempts(ctx, m)
			},
			Providers: map[string]Provider{"call": Pretend(slog.New(slog.NewTextHandler(&log, nil)), &bytes.Buffer{})},
		})
		if err != nil {
			t.Fatal(err)
		}
		w.handle = func(ctx context.Context, rec *sluice.Record) error {
			if rec.Table == "reflex" {
				return nil // the sister service's
			}
			err := r.Dispatch(ctx, rec)
			if err != nil && secret.MatchString(err.Error()) {
				t.Errorf("error %v", err)
			}
			return err
		}
		fx := Fixtures()
		bad := edit(fx[call], "800e613", "bad", `"order":{"N":"2"}`, `"order":{"S":"2"}`)
		w.put(t, fx[contact], fx[email], fx[call], bad, fx[search].With(item.String("snoozedUntil", "I-1")))
		down := 0
		w.Fault = func(bool, []dynamo.Op) error {
			if down++; down%3 == 0 {
				return errors.New("throttled")
			}
			return nil
		}
		w.run(t, "22:00:00")
		for _, want := range []string{"a search stands still", "passing over a part", "a contact was not reached", "pretending"} {
			if !bytes.Contains(log.Bytes(), []byte(want)) {
				t.Errorf("the log has no %q", want)
			}
		}
		if found := secret.Find(log.Bytes()); found != nil {
			t.Errorf("the log has %s:\n%s", found, log.String())
		}
	})
}
