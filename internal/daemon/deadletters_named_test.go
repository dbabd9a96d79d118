package daemon

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/letterkeys"
	"github.com/sluicehq/sluice/internal/letters"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/state"
)

// signed is a store whose letters others may write.
type signed struct {
	state.Letters
	letterkeys.Keys
}

// A redrive with allow runs a letter of a route without redrive. A redrive with
// unsigned runs an unsigned letter. Short ids work, too.
func TestDeadLettersAreRedrivenAllTheSame(t *testing.T) {
	l := newLetters(t, t.Context())
	store := state.NewMemory()
	rec := recordtest.New(recordtest.Spec{Keys: `{"pk":{"S":"a"}}`, Sequence: recordtest.Sequence(1)})
	l.box = letters.NewBox(store, "app")
	if err := l.box.Park(t.Context(), &rec, sluice.Failure{Route: "strict", Last: errors.New("down")}); err != nil {
		t.Fatal(err)
	}
	m := router.New()
	ran := 0
	m.Handle("*#*", func(context.Context, *sluice.Record) error { ran++; return nil }, router.Name("strict"))
	l.h = DeadLetters(t.Context(), letters.NewBox(signed{store, letterkeys.Keys{}}, "app"), "", m, nil, slog.New(slog.NewTextHandler(&l.log, nil)))
	id := l.box.ID(&rec, "strict")
	path := "/deadletters/" + letters.ShortID(id) + "/redrive?"
	for _, q := range []string{"", "force=1", "allow=strict", "unsigned=" + id, "allow=other&unsigned=" + id} {
		if code, body := l.ask("POST", path+q); code != 200 || !strings.Contains(body, `"result":"refused"`) || ran > 0 {
			t.Errorf("%s: %d %s", q, code, body)
		}
	}
	if code, body := l.ask("POST", path+"unsigned=none"); code != 200 || !strings.Contains(body, `"result":"refused"`) || ran > 0 {
		t.Errorf("%d %s", code, body)
	}
	if code, body := l.ask("GET", "/deadletters/"+letters.ShortID(id)); code != 200 || !strings.Contains(body, `"unverified":"it is not signed`) {
		t.Errorf("%d %s", code, body)
	}
	if code, body := l.ask("POST", path+"allow=strict&unsigned="+letters.ShortID(id)); code != 200 || !strings.Contains(body, `"result":"done"`) || ran != 1 {
		t.Errorf("%d %s", code, body)
	}
	if !strings.Contains(l.log.String(), "speak against it") || !strings.Contains(l.log.String(), "unsigned=["+id+"]") {
		t.Errorf("log: %s", l.log.String())
	}
}

// A short id that fits several letters touches none of them.
func TestDeadLettersThatBeginAlike(t *testing.T) {
	l := newLetters(t, t.Context())
	for _, method := range []string{"GET", "DELETE"} {
		if code, body := l.ask(method, "/deadletters/0000"); code != 409 || !strings.Contains(body, l.ids[0]) {
			t.Errorf("%s: %d %s", method, code, body)
		}
	}
	if code, body := l.ask("DELETE", "/deadletters/"+l.ids[0][len(l.ids[0])-16:][:6]); code != 200 || len(l.page("/deadletters").DeadLetters) != 3 {
		t.Errorf("%d %s", code, body)
	}
}
