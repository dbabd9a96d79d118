package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/daemon"
	"github.com/sluicehq/sluice/internal/letters"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/state"
)

// A line about a redrive names id, route and cause once each, and says what to do.
func TestOutcomeLines(t *testing.T) {
	for _, tt := range []struct {
		name, route string
		twice       bool // two changes of the item are parked
		want        string
	}{
		{"failed", "calls", false, "ID: failed on calls: the queue is down"},
		{"refused", "strict", false, `ID: refused: route "strict" does not allow redriven records: later changes of the item may have been handled since, which this one could undo. Where it cannot, run it by --allow "strict" once, or give the route redrive: true (router.Redrive)`},
		{"no route", "gone", false, `ID: refused: there is no route "gone" any more: bring its name back, or delete the dead letter`},
		{"filtered", "deletions", false, `ID: refused: route "deletions" does not take this record any more: it filters it now; have it take the record, or delete the dead letter`},
		{"waiting", "calls", true, `ID: waiting: earlier changes of its item are still parked: EARLIER; redrive them first, or together (--earlier runs them first, --force runs this one all the same)`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			box := deadletter.NewBox(state.NewMemory(), "app")
			sequences := []int{2}
			if tt.twice {
				sequences = []int{1, 2}
			}
			for _, n := range sequences {
				rec := recordtest.New(recordtest.Spec{Keys: `{"pk":{"S":"a"}}`, Sequence: recordtest.Sequence(n), Shard: "shard"})
				if err := box.Park(t.Context(), &rec, sluice.Failure{Route: tt.route, Attempts: 8, First: errors.New("first"), Last: errors.New("last")}); err != nil {
					t.Fatal(err)
				}
			}
			entries, _, err := box.List(t.Context(), "", 10)
			if err != nil {
				t.Fatal(err)
			}
			m := router.New()
			m.Handle("*#*", func(context.Context, *sluice.Record) error { return errors.New("the queue is down") }, router.Name("calls"), router.Redrive())
			m.Handle("*#*", sluiceNothing, router.Name("strict"))
			m.Handle("*#REMOVE", sluiceNothing, router.Name("deletions"), router.Redrive())
			var got string
			id := entries[len(entries)-1].ID
			err = box.Redrive(t.Context(), m, id, deadletter.How{Told: func(o deadletter.Outcome) { got = outcomeLine(o) }})
			want := strings.NewReplacer("ID", letters.ShortID(id), "EARLIER", entries[0].ID).Replace(tt.want)
			if got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if err == nil || !strings.Contains(err.Error(), id) { // who is not told has it in the error
				t.Errorf("%v does not name %s", err, id)
			}
		})
	}
}

// purge does not delete letters that the daemon parks after the question.
func TestPurgeLeavesWhatComesAfterTheCount(t *testing.T) {
	box := letters.NewBox(state.NewMemory(), "app")
	parks := func(n int) {
		rec := recordtest.New(recordtest.Spec{Keys: `{"pk":{"S":"a"}}`, Sequence: recordtest.Sequence(n), Shard: "shard"})
		if err := box.Park(t.Context(), &rec, sluice.Failure{Route: "r", Attempts: 8, First: errors.New("first"), Last: errors.New("last")}); err != nil {
			t.Error(err)
		}
	}
	parks(1)
	answers := daemon.DeadLetters(t.Context(), box, "", router.New(), nil, discard)
	daemon := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answers.ServeHTTP(w, r)
		if r.URL.Query().Get("dryRun") == "1" {
			parks(2)
		}
	}))
	defer daemon.Close()
	var stdout, stderr strings.Builder
	c := &cli{stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr, lookup: func(string) (string, bool) { return "", false }}
	if code := c.execute(t.Context(), []string{"dlq", "purge", "--all", "--yes", "--daemon", daemon.URL}); code != 0 || !strings.HasPrefix(stdout.String(), "1 deleted from") {
		t.Errorf("exit %d: %s%s", code, &stdout, &stderr)
	}
	entries, _, err := box.List(t.Context(), "", 10)
	if err != nil || len(entries) != 1 || entries[0].Sequence != recordtest.Sequence(2) {
		t.Errorf("left: %+v, %v", entries, err)
	}
}

// Part of an id that two letters have names neither, also once one of them is gone.
func TestPartsOfIDsAreLookedUpFirst(t *testing.T) {
	for _, command := range []string{"purge --yes", "redrive"} {
		store := state.NewMemory()
		for i, id := range []string{"1-cea09b3400000000", "2-cea09b34ffffffff"} {
			rec := recordtest.New(recordtest.Spec{Keys: `{"pk":{"S":"` + id + `"}}`, Sequence: recordtest.Sequence(i + 1), Shard: "shard"})
			e := deadletter.Entry{ID: id, Route: "r", EventID: rec.EventID, StreamARN: rec.StreamARN, Sequence: rec.Sequence, Raw: rec.Raw()}
			data, err := e.Append(nil)
			if err == nil {
				err = store.PutLetter(t.Context(), "app", id, data)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		m := router.New()
		m.Handle("*#*", sluiceNothing, router.Name("r"), router.Redrive())
		daemon := daemon.DeadLetters(t.Context(), letters.NewBox(store, "app"), "", m, nil, discard)
		args := append([]string{"dlq"}, strings.Fields(command+" 1-cea09b3400000000 cea09b34 none 1-cea09b34")...)
		code, out, problems := asked(t, daemon, args...)
		if code != 1 || !strings.Contains(out, "1 d") || !strings.Contains(problems, "several dead letters begin with cea09b34") || strings.Count(problems, "no such") != 1 {
			t.Errorf("%s: exit %d: %s%s", command, code, out, problems)
		}
		if left, err := store.ListLetters(t.Context(), "app", "", 10); err != nil || len(left) != 1 || left[0].ID != "2-cea09b34ffffffff" {
			t.Errorf("%s: left are %s, %v", command, left, err)
		}
		if code, out, _ := asked(t, daemon, "dlq", "redrive", "none"); code != 1 || out != "" {
			t.Errorf("exit %d: %s", code, out)
		}
	}
}

// A redrive names an unreadable letter, and says what to do.
func TestOutcomeLineBehindUnreadable(t *testing.T) {
	store := state.NewMemory()
	box := deadletter.NewBox(store, "sluice")
	rec := recordtest.New(recordtest.Spec{Keys: `{"pk":{"S":"a"}}`, Sequence: recordtest.Sequence(2), Shard: "shard"})
	if err := box.Park(t.Context(), &rec, sluice.Failure{Route: "r", Attempts: 8, First: errors.New("first"), Last: errors.New("last")}); err != nil {
		t.Fatal(err)
	}
	if err := store.PutLetter(t.Context(), "sluice", "damaged", []byte("{")); err != nil {
		t.Fatal(err)
	}
	id, got := box.ID(&rec, "r"), []string(nil)
	how := deadletter.How{Told: func(o deadletter.Outcome) { got = append(got, outcomeLine(o)) }}
	_ = box.Redrive(t.Context(), router.New(), id, how)
	_, _ = box.RedriveAll(t.Context(), router.New(), deadletter.Filter{}, how)
	want := letters.ShortID(id) + ": waiting for damaged: damaged cannot be read, and may be of an earlier change of its item: read it with the program that wrote it, delete it, or run this one all the same by force (dlq purge deletes it by its id, --force runs this one all the same)"
	if !slices.Equal(got, []string{want, want}) {
		t.Errorf("got  %q\nwant %s, twice", got, want)
	}
}
