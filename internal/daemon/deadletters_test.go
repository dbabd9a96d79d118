package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
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

// lettersOf answers for a box with records of the items a, a and b, and a gap.
type lettersOf struct {
	t       *testing.T
	box     *letters.Box
	h       http.Handler
	routes  sluice.Matcher
	handled []string
	fails   bool
	takes   time.Duration
	log     bytes.Buffer
	ids     []string
}

func newLetters(t *testing.T, ctx context.Context) *lettersOf {
	l := &lettersOf{t: t, box: letters.NewBox(state.NewMemory(), "app")}
	for i, key := range []string{"a", "a", "b"} {
		rec := recordtest.New(recordtest.Spec{Keys: `{"pk":{"S":"` + key + `"}}`, New: `{"pk":{"S":"` + key + `"},"x":{"S":"secret"}}`, Sequence: recordtest.Sequence(i + 1)})
		if err := l.box.Park(ctx, &rec, sluice.Failure{Route: "r", Last: fmt.Errorf("cause %d", i+1)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.box.ParkGap(ctx, &sluice.Gap{Table: "test", StreamARN: recordtest.ARN, ShardID: "s", After: recordtest.Sequence(5)}); err != nil {
		t.Fatal(err)
	}
	entries, _, err := l.box.List(ctx, "", 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		l.ids = append(l.ids, e.ID)
	}
	m := router.New(router.TypeFrom(router.Table(map[string]string{"test": "t"})))
	m.Handle("t#INSERT", func(_ context.Context, rec *sluice.Record) error {
		l.handled = append(l.handled, fmt.Sprint(recordtest.Nth(rec.Sequence), " ", rec.Origin))
		time.Sleep(l.takes)
		if l.fails {
			return errors.New("still down")
		}
		return nil
	}, router.Name("r"), router.Redrive())
	l.routes = m
	l.h = DeadLetters(ctx, l.box, "", m, nil, slog.New(slog.NewTextHandler(&l.log, nil)))
	return l
}

func (l *lettersOf) ask(method, path string, change ...func(*http.Request)) (int, string) {
	l.t.Helper()
	r := httptest.NewRequest(method, "http://127.0.0.1:9464"+path, nil)
	for _, f := range change {
		f(r)
	}
	w := httptest.NewRecorder()
	l.h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func (l *lettersOf) page(path string) DeadLetterPage {
	l.t.Helper()
	code, body := l.ask("GET", path)
	var p DeadLetterPage
	if err := json.Unmarshal([]byte(body), &p); code != 200 || err != nil {
		l.t.Fatalf("%s: %d %s", path, code, body)
	}
	return p
}

func TestDeadLettersAreListed(t *testing.T) {
	l := newLetters(t, t.Context())
	if p := l.page("/deadletters"); len(p.DeadLetters) != 4 || p.Next != "" || p.DeadLetters[3].Gap == "" || p.DeadLetters[0].Last.Error != "cause 1" {
		t.Errorf("%+v", p)
	}
	p := l.page("/deadletters?limit=2&kind=record")
	if len(p.DeadLetters) != 2 || p.Next != l.ids[1] {
		t.Fatalf("first page: %+v", p)
	}
	if p := l.page("/deadletters?limit=2&kind=record&after=" + p.Next); len(p.DeadLetters) != 1 || p.Next != "" || p.DeadLetters[0].ID != l.ids[2] {
		t.Errorf("second page: %+v", p)
	}
	if p := l.page("/deadletters?key=pk%3Db"); len(p.DeadLetters) != 1 || string(p.DeadLetters[0].Keys) != `{"pk":"b"}` {
		t.Errorf("by key: %+v", p)
	}
	for path, payload := range map[string]bool{"/deadletters": false, "/deadletters/" + l.ids[0]: false, "/deadletters/" + l.ids[0] + "?payload=1": true} {
		if _, body := l.ask("GET", path); strings.Contains(body, "secret") != payload {
			t.Errorf("%s: %s", path, body)
		}
	}
	if code, body := l.ask("GET", "/deadletters/counts"); code != 200 || !strings.Contains(body, `{"route":"r","table":"test","kind":"record","count":3}`) {
		t.Errorf("counts: %d %s", code, body)
	}
}

func TestDeadLettersAreRedriven(t *testing.T) {
	l := newLetters(t, t.Context())
	if code, body := l.ask("POST", "/deadletters/"+l.ids[1]+"/redrive"); code != 200 || !strings.Contains(body, `"result":"waiting"`) || !strings.Contains(body, l.ids[0]) || l.handled != nil {
		t.Errorf("behind an earlier one: %d %s, handled %v", code, body, l.handled)
	}
	if code, body := l.ask("POST", "/deadletters/redrive?dryRun=1"); code != 200 || strings.Count(body, `"would run"`) != 3 || !strings.Contains(body, `"gaps":1,"wouldRun":3`) || l.handled != nil || strings.Contains(l.log.String(), "would run") {
		t.Errorf("a dry run: %d %s, handled %v", code, body, l.handled)
	}
	l.fails = true
	if code, body := l.ask("POST", "/deadletters/redrive?key=pk%3Da"); code != 200 || !strings.Contains(body, "still down") || !strings.Contains(body, `"failed":1,"waiting":1`) || strings.Contains(body, `"fault"`) {
		t.Errorf("that fails: %d %s", code, body)
	}
	l.fails, l.handled = false, nil
	if code, body := l.ask("POST", "/deadletters/"+l.ids[1]+"/redrive?earlier=1"); code != 200 || strings.Count(body, `"result":"done"`) != 2 || fmt.Sprint(l.handled) != "[1 redriven 2 redriven]" {
		t.Errorf("with the earlier one: %d %s, handled %v", code, body, l.handled)
	}
	if p := l.page("/deadletters"); len(p.DeadLetters) != 2 {
		t.Errorf("left: %+v", p)
	}
	if !strings.Contains(l.log.String(), "dead letter redriven") || strings.Contains(l.log.String(), "secret") {
		t.Errorf("log: %s", l.log.String())
	}
}

func TestDeadLettersAreDeleted(t *testing.T) {
	l := newLetters(t, t.Context())
	left := func() int { return len(l.page("/deadletters").DeadLetters) }
	if code, body := l.ask("DELETE", "/deadletters"); code != 400 || left() != 4 {
		t.Errorf("without a filter: %d %s", code, body)
	}
	if code, body := l.ask("DELETE", "/deadletters?all=1&dryRun=1"); code != 200 || !strings.Contains(body, `"deleted":3,"dryRun":true`) || left() != 4 {
		t.Errorf("a dry run: %d %s", code, body)
	}
	if code, body := l.ask("DELETE", "/deadletters/"+l.ids[0]); code != 200 || left() != 3 {
		t.Errorf("one: %d %s", code, body)
	}
	if code, body := l.ask("DELETE", "/deadletters/"+l.ids[0]); code != 404 {
		t.Errorf("one that is not there: %d %s", code, body)
	}
	if code, body := l.ask("DELETE", "/deadletters?error=CAUSE"); code != 200 || !strings.Contains(body, `"deleted":2`) || left() != 1 {
		t.Errorf("by a filter: %d %s", code, body)
	}
	if code, body := l.ask("DELETE", "/deadletters?kind=gap"); code != 200 || left() != 0 {
		t.Errorf("gaps: %d %s", code, body)
	}
}

func TestDeadLettersRefuseWhatIsWrong(t *testing.T) {
	l := newLetters(t, t.Context())
	for name, c := range map[string]struct {
		method, path string
		change       func(*http.Request)
		code         int
	}{
		"misspelt":           {"DELETE", "/deadletters?all=1&tabel=x", func(*http.Request) {}, 400},
		"a wrong switch":     {"DELETE", "/deadletters?all=1&dryRun=maybe", func(*http.Request) {}, 400},
		"a wrong filter":     {"POST", "/deadletters/redrive?since=x", func(*http.Request) {}, 400},
		"a wrong limit":      {"GET", "/deadletters?limit=0", func(*http.Request) {}, 400},
		"no such":            {"GET", "/deadletters/none", func(*http.Request) {}, 404},
		"no such to redrive": {"POST", "/deadletters/none/redrive", func(*http.Request) {}, 404},
		"another method":     {"PUT", "/deadletters", func(*http.Request) {}, 405},
	} {
		if code, body := l.ask(c.method, c.path, c.change); code != c.code {
			t.Errorf("%s: %d %s, want %d", name, code, body, c.code)
		}
	}
	if len(l.page("/deadletters").DeadLetters) != 4 || l.handled != nil {
		t.Error("something was changed all the same")
	}
}

// The end of the daemon ends a redrive between two entries.
func TestRedriveEndsWithTheDaemon(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	l := newLetters(t, ctx)
	rest := l.h
	l.h = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rest.ServeHTTP(&afterFirst{ResponseWriter: w, then: cancel}, r)
	})
	code, body := l.ask("POST", "/deadletters/redrive")
	if code != 200 || !strings.Contains(body, `"fault":"context canceled"`) || len(l.handled) != 1 {
		t.Errorf("%d %s, handled %v", code, body, l.handled)
	}
}

// afterFirst calls then once something was written.
type afterFirst struct {
	http.ResponseWriter
	then func()
}

func (a *afterFirst) Write(b []byte) (int, error) {
	defer a.then()
	return a.ResponseWriter.(io.Writer).Write(b)
}

// A request that is meant for another daemon's dead letters is refused before
// anything is done.
func TestDeadLettersOfAnotherStateFile(t *testing.T) {
	mine, other := filepath.Join(t.TempDir(), "sluice.db"), filepath.Join(t.TempDir(), "sluice.db")
	for _, path := range []string{mine, other} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h := DeadLetters(t.Context(), letters.NewBox(state.NewMemory(), "app"), mine, router.New(), nil, slog.New(slog.DiscardHandler))
	for _, c := range []struct {
		meant string
		want  int
	}{{"", 200}, {mine, 200}, {other, 421}, {mine + ".gone", 421}} {
		for _, method := range []string{"GET", "DELETE"} {
			r := httptest.NewRequest(method, "http://127.0.0.1/deadletters", nil)
			if method == "DELETE" {
				r.URL.RawQuery = "all=1"
			}
			if c.meant != "" {
				r.Header.Set(StateHeader, c.meant)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != c.want {
				t.Errorf("%s meant for %q: %d %s, want %d", method, c.meant, w.Code, w.Body, c.want)
			}
		}
	}
}

// A request that names another application than the daemon's is refused, too.
func TestMeantForAnotherApplication(t *testing.T) {
	h := DeadLetters(t.Context(), letters.NewBox(state.NewMemory(), "app"), "", router.New(), nil, slog.New(slog.DiscardHandler))
	for meant, want := range map[string]int{"": 200, "app": 200, "other": 421} {
		r := httptest.NewRequest("DELETE", "http://127.0.0.1/deadletters?all=1", nil)
		r.Header.Set(ApplicationHeader, meant)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("meant for %q: %d %s, want %d", meant, w.Code, w.Body, want)
		}
	}
}

// A purge can wait long for another client's redrive. It still gets its result,
// although the server limits other answers to half a minute.
func TestPurgeThatWaitsIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLetters(t, t.Context())
		l.takes = time.Hour
		go l.ask("POST", "/deadletters/"+l.ids[0]+"/redrive")
		synctest.Wait()
		rest := l.h
		l.h = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			rest.ServeHTTP(&slowly{untilDeadline{w, time.Now().Add(30 * time.Second)}}, r)
		})
		if code, body := l.ask("DELETE", "/deadletters?all=1"); code != 200 || !strings.Contains(body, `"deleted":2`) {
			t.Errorf("%d %q", code, body)
		}
	})
}

// A client that hangs up ends its redrive between two letters.
func TestRedriveEndsWithItsClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLetters(t, t.Context())
		ctx, hangUp := context.WithCancel(t.Context())
		then := func() {
			hangUp()
			synctest.Wait()
		}
		rest := l.h
		l.h = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			rest.ServeHTTP(&afterFirst{ResponseWriter: w, then: then}, r.WithContext(ctx))
		})
		if _, body := l.ask("POST", "/deadletters/redrive"); len(l.handled) != 1 || !strings.Contains(body, `"fault":"context canceled"`) {
			t.Errorf("%s, handled %v", body, l.handled)
		}
	})
}

// Lists name unreadable letters beside the others, on the right pages. Unreadable
// letters can be deleted.
func TestDeadLettersThatCannotBeRead(t *testing.T) {
	l := newLetters(t, t.Context())
	store := state.NewMemory()
	rec := recordtest.New(recordtest.Spec{Keys: `{"pk":{"S":"a"}}`, Sequence: recordtest.Sequence(1)})
	l.box = letters.NewBox(store, "app")
	if err := l.box.Park(t.Context(), &rec, sluice.Failure{Route: "r", Last: errors.New("cause")}); err != nil {
		t.Fatal(err)
	}
	if err := store.PutLetter(t.Context(), "app", "damaged", []byte("{")); err != nil {
		t.Fatal(err)
	}
	l.h = DeadLetters(t.Context(), l.box, "", router.New(), nil, slog.New(slog.NewTextHandler(&l.log, nil)))
	for path, want := range map[string]string{
		"GET /deadletters":                       `}],"unreadable":"dead letter damaged: `,
		"GET /deadletters/counts":                `"unreadable":"dead letter damaged: `,
		"POST /deadletters/redrive":              `"fault":"dead letter damaged: `,
		"DELETE /deadletters?all=1&dryRun=1":     `"deleted":1,"dryRun":true,"unreadable":"dead letter damaged: `,
		"POST /deadletters/redrive?force=1":      `"failed":1`,
		"POST /deadletters/redrive?dryRun=1":     `"waiting":1`,
		"GET /deadletters?kind=gap":              `"unreadable":"dead letter damaged: `,
		"POST /deadletters/redrive?table=nobody": `"fault":"dead letter damaged: `,
	} {
		method, path, _ := strings.Cut(path, " ")
		code, body := l.ask(method, path)
		if code != 200 || !strings.Contains(body, want) {
			t.Errorf("%s %s: %d %s, want %s", method, path, code, body, want)
		}
	}
	if strings.Contains(l.log.String(), "deleted") {
		t.Errorf("log of what was only counted: %s", l.log.String())
	}
	if code, body := l.ask("DELETE", "/deadletters/damaged"); code != 200 || !strings.Contains(l.log.String(), `"dead letter deleted" id=damaged`) {
		t.Errorf("deleted: %d %s, log %s", code, body, l.log.String())
	}
	if code, body := l.ask("DELETE", "/deadletters?all=1"); code != 200 || strings.Contains(body, "unreadable") || !strings.Contains(l.log.String(), `"dead letters deleted" count=1`) {
		t.Errorf("the rest: %d %s, log %s", code, body, l.log.String())
	}
}

func TestCount(t *testing.T) {
	var r deadletter.Report
	for _, result := range []deadletter.Result{deadletter.Done, deadletter.Failed, deadletter.Refused, deadletter.Waiting, deadletter.IsGap, deadletter.WouldRun} {
		count(&r, deadletter.Outcome{Result: result})
	}
	if r != (deadletter.Report{Done: 1, Failed: 2, Waiting: 1, Gaps: 1, WouldRun: 1}) {
		t.Errorf("report %+v", r)
	}
}
