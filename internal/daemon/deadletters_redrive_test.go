package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/letters"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/state"
)

// untilDeadline is a response whose writes have a deadline.
type untilDeadline struct {
	http.ResponseWriter
	deadline time.Time
}

func (u *untilDeadline) SetWriteDeadline(at time.Time) error {
	u.deadline = at
	return nil
}

// stalled is the answer to a client that does not read it: writing takes until its
// deadline, or for ever.
type stalled struct{ untilDeadline }

func (s *stalled) Write([]byte) (int, error) {
	if s.deadline.IsZero() {
		select {}
	}
	time.Sleep(time.Until(s.deadline))
	return 0, os.ErrDeadlineExceeded
}

// A client that does not read the answer ends its redrive, and other redrives can run.
// The log has the results so far.
func TestRedriveOfWhoDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLetters(t, t.Context())
		r := httptest.NewRequest("POST", "http://127.0.0.1:9464/deadletters/redrive", nil)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			l.h.ServeHTTP(&stalled{untilDeadline{ResponseWriter: httptest.NewRecorder()}}, r)
		}()
		synctest.Wait()
		if code, body := l.ask("POST", "/deadletters/redrive"); code != 200 || !strings.Contains(body, `"done":2`) {
			t.Errorf("who comes next: %d %s", code, body)
		}
		<-ended
		if fmt.Sprint(l.handled) != "[1 redriven 2 redriven 3 redriven]" || strings.Count(l.log.String(), "dead letter redriven") != 4 || !strings.Contains(l.log.String(), "has not read the whole answer") || !strings.Contains(l.log.String(), "done=1") {
			t.Errorf("handled %v, log: %s", l.handled, l.log.String())
		}
	})
}

// A handler may take as long as it takes: the time is for the client.
func TestRedriveThatTakesLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLetters(t, t.Context())
		rest := l.h
		l.h = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			rest.ServeHTTP(&slowly{untilDeadline{ResponseWriter: w}}, r)
		})
		l.takes = time.Hour
		if code, body := l.ask("POST", "/deadletters/redrive"); code != 200 || !strings.Contains(body, `"done":3`) {
			t.Errorf("%d %s", code, body)
		}
	})
}

// slowly is a connection that takes half a minute for each write.
type slowly struct{ untilDeadline }

func (s *slowly) Write(b []byte) (int, error) {
	time.Sleep(30 * time.Second)
	if !s.deadline.IsZero() && time.Now().After(s.deadline) {
		return 0, os.ErrDeadlineExceeded
	}
	return s.ResponseWriter.Write(b)
}

// getFails is a store in which a letter is not read once: the time at.
type getFails struct {
	state.Letters
	id   string
	at   int
	gets int
}

func (f *getFails) GetLetter(ctx context.Context, app, id string) ([]byte, bool, error) {
	if f.id == id {
		if f.gets++; f.gets == f.at {
			return nil, false, errors.New("disk")
		}
	}
	return f.Letters.GetLetter(ctx, app, id)
}

// The answer says why the requested letter failed, also if an earlier letter succeeded
// or still waits.
func TestRedriveSaysWhatFailedBehindTheEarlierOne(t *testing.T) {
	for i, done := range []int{0, 1} {
		l := newLetters(t, t.Context())
		store := &getFails{Letters: state.NewMemory(), id: l.ids[i], at: 1}
		if i == 1 {
			store.at = 4 // whether it is there, twice, what it is, and what it is behind the earlier one
		}
		for _, id := range l.ids[:2] {
			e, err := l.box.Get(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			data, err := e.Append(nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := store.PutLetter(t.Context(), "app", id, data); err != nil {
				t.Fatal(err)
			}
		}
		m := router.New()
		m.Handle("*#*", func(context.Context, *sluice.Record) error { return nil }, router.Name("r"), router.Redrive())
		l.h = DeadLetters(t.Context(), letters.NewBox(store, "app"), "", m, nil, slog.New(slog.DiscardHandler))
		code, body := l.ask("POST", "/deadletters/"+l.ids[1]+"/redrive?earlier=1")
		if code != 200 || strings.Count(body, `"result":"done"`) != done || !strings.Contains(body, `"fault":"disk"`) {
			t.Errorf("letter %d cannot be read: %d %s", i+1, code, body)
		}
	}
}

// A redrive of several letters passes over a missing one: an earlier redrive of its item
// may have included it. The outcome of one letter hides no error of the next. Both
// letters wait behind a damaged one, which may be of their items.
func TestRedriveOfSeveralIDs(t *testing.T) {
	l := newLetters(t, t.Context())
	store := state.NewMemory()
	l.box = letters.NewBox(store, "app")
	var ids []string
	for i, key := range []string{"a", "b"} {
		rec := recordtest.New(recordtest.Spec{Keys: `{"pk":{"S":"` + key + `"}}`, Sequence: recordtest.Sequence(i + 1)})
		if err := l.box.Park(t.Context(), &rec, sluice.Failure{Route: "r", Last: errors.New("cause")}); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, l.box.ID(&rec, "r"))
	}
	if err := store.PutLetter(t.Context(), "app", "damaged", []byte("{")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		ids  []string
		want deadletter.Report
		err  string
	}{
		{[]string{"gone"}, deadletter.Report{}, "no such dead letter: gone"},
		{[]string{"gone", "also gone"}, deadletter.Report{}, ""},
		{[]string{ids[0], "gone", "damaged", ids[1]}, deadletter.Report{Waiting: 2}, "dead letter damaged: "},
	} {
		how := deadletter.How{Told: func(deadletter.Outcome) {}}
		got, err := redrive(t.Context(), l.box, l.routes, tt.ids, deadletter.Filter{}, how)
		if got != tt.want || !strings.HasPrefix(text(err), tt.err) || (err == nil) != (tt.err == "") {
			t.Errorf("%q: %+v, %v; want %+v, %q", tt.ids, got, err, tt.want, tt.err)
		}
	}
}
