package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/sluicehq/sluice/internal/localtest"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/access"
	"github.com/sluicehq/sluice/internal/daemon"
	"github.com/sluicehq/sluice/internal/daemons"
	"github.com/sluicehq/sluice/internal/letters"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/state"
	"github.com/sluicehq/sluice/state/boltstate"
)

// parkSome parks changes of the items a, a and b on the route "log", one of c on
// "strict", and a gap.
func parkSome(ts *testscript.TestScript, letters state.Letters) {
	ctx := ts.Value(testKey{}).(*testing.T).Context()
	box := deadletter.NewBox(letters, "sluice")
	for i, key := range []string{"a", "a", "b", "c"} {
		rec := recordtest.New(recordtest.Spec{Keys: `{"pk":{"S":"` + key + `"}}`, New: `{"pk":{"S":"` + key + `"},"note":{"S":"hush"},"entityType":{"S":"search"}}`, Sequence: recordtest.Sequence(i + 1), Shard: "shard"})
		f := sluice.Failure{Route: "log", Attempts: 8, First: errors.New("first cause"), Last: fmt.Errorf("cause %d", i+1)}
		if key == "c" {
			f.Route = "strict"
		}
		ts.Check(box.Park(ctx, &rec, f))
	}
	ts.Check(box.ParkGap(ctx, &sluice.Gap{Table: "test", StreamARN: recordtest.ARN, ShardID: "shard", After: recordtest.Sequence(5)}))
}

// parkOdd parks three unusual letters: a record that is no JSON, a record by reference,
// and a letter of a newer program.
func parkOdd(ts *testscript.TestScript, letters state.Letters) {
	ctx := ts.Value(testKey{}).(*testing.T).Context()
	rec := sluice.DecodeRecord([]byte("no \xff JSON"))
	rec.Table = "test"
	ts.Check(deadletter.NewBox(letters, "sluice").Park(ctx, rec, sluice.Failure{Attempts: 1, First: errors.New("first\tcause"), Last: errors.New("one\nline")}))
	large := recordtest.New(recordtest.Spec{Keys: `{"pk":{"S":"a"}}`, Sequence: recordtest.Sequence(7), Shard: "shard"})
	for _, letter := range []string{
		fmt.Sprintf(`{"version":3,"kind":"reference","id":"large","table":"test","position":{"streamArn":%q,"sequence":%q},"eventName":"INSERT","origin":"live","reference":{"keys":%s,"bytes":900000}}`, large.StreamARN, large.Sequence, large.Keys.Raw()),
		fmt.Sprintf(`{"version":9,"id":"newer","position":{"streamArn":%q,"sequence":%q}}`, large.StreamARN, recordtest.Sequence(6)),
	} {
		var head struct{ ID string }
		ts.Check(json.Unmarshal([]byte(letter), &head))
		ts.Check(letters.PutLetter(ctx, "sluice", head.ID, []byte(letter)))
	}
}

type testKey struct{}

// scriptCommands are the commands of the scripts about dead letters and state.
var scriptCommands = map[string]func(*testscript.TestScript, bool, []string){
	// letters FILE makes a state file, or with -file a dead-letter file; -odd makes
	// one of letters that are out of the ordinary.
	"letters": func(ts *testscript.TestScript, _ bool, args []string) {
		if args[0] == "-file" {
			f, err := deadletter.OpenFile(ts.MkAbs(args[1]))
			ts.Check(err)
			parkSome(ts, f)
			ts.Check(f.Close())
			return
		}
		fill := parkSome
		if args[0] == "-odd" {
			fill, args = parkOdd, args[1:]
		}
		s, err := boltstate.Open(ts.MkAbs(args[0]), boltstate.Options{})
		ts.Check(err)
		fill(ts, s)
		ts.Check(s.Close())
	},
	// shards FILE makes a state file with a stream: a parent, two children, and a child
	// of one of these.
	"shards": func(ts *testscript.TestScript, _ bool, args []string) {
		ctx := ts.Value(testKey{}).(*testing.T).Context()
		s, err := boltstate.Open(ts.MkAbs(args[0]), boltstate.Options{})
		ts.Check(err)
		st := state.Stream{Application: "sluice", ARN: recordtest.ARN}
		_, err = s.Start(ctx, st, state.Start{Position: "TRIM_HORIZON"})
		ts.Check(err)
		for _, sh := range []state.Shard{
			{ID: "shardId-00000001414576573621-aaaa", Position: state.Position{Sequence: string(recordtest.Sequence(7)), Finished: true}},
			{ID: "shardId-00000001414576573621-bbbb", Parent: "shardId-00000001414576573621-aaaa", Position: state.Position{Sequence: string(recordtest.Sequence(9)), Finished: true}},
			{ID: "shardId-00000001414576573621-cccc", Parent: "shardId-00000001414576573621-aaaa", Position: state.Position{Sequence: string(recordtest.Sequence(10))}},
			{ID: "shardId-00000001414576573621-dddd", Parent: "shardId-00000001414576573621-bbbb", Position: state.Position{Sequence: string(recordtest.Sequence(11))}},
		} {
			got, err := s.Claim(ctx, st, sh.ID, sh.Parent, "me")
			ts.Check(err)
			ts.Check(errors.Join(s.Checkpoint(ctx, []state.Checkpoint{{Lease: state.Lease{Stream: st, ShardID: sh.ID, Owner: "me", Epoch: got.Epoch}, Position: sh.Position}})...))
		}
		ts.Check(s.Close())
	},
	// noted FILE is a daemon that was killed.
	"noted": func(ts *testscript.TestScript, _ bool, args []string) {
		_, err := daemons.Note(ts.Getenv, daemons.Daemon{State: ts.MkAbs(args[0]), Application: "sluice"})
		ts.Check(err)
	},
	// daemon FILE holds a state file until the end of the script and answers for
	// it; its URL is $DAEMON,
	// and its address $LISTEN. -noted has the commands find it.
	"daemon": func(ts *testscript.TestScript, _ bool, args []string) {
		noted := args[0] == "-noted"
		if noted {
			args = args[1:]
		}
		s, err := boltstate.Open(ts.MkAbs(args[0]), boltstate.Options{})
		ts.Check(err)
		ctx := ts.Value(testKey{}).(*testing.T).Context()
		m := router.New()
		m.Handle("*#*", sluiceNothing, router.Name("log"), router.Redrive())
		mux := http.NewServeMux()
		mux.Handle("/", daemon.DeadLetters(ctx, letters.NewBox(s, "sluice"), s.Path(), m, nil, discard))
		routes := daemon.Pausing(s.Path(), "sluice", s, flow.NewGroup(m), discard)
		mux.Handle("/routes", routes)
		mux.Handle("/routes/", routes)
		mux.Handle("POST /park", daemon.Parking(s.Path(), "sluice", new(halfDown), discard))
		mux.HandleFunc("GET /api/status", func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintln(w, `{"application":"sluice","ready":false,"reasons":["route \"mail\": \u001b[31mdown"],"held":1,"routes":[{"route":"mail","state":"outage"}]}`)
		})
		mux.HandleFunc("GET /api/held", func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintln(w, `{"held":[{"table":"orders","key":"00ff","route":"mail","attempts":3,"error":"not yet"}],"unlisted":["worker b holds 2 more"]}`)
		})
		open := `{"gaps":[{"table":"orders","found":"2026-01-31T15:04:05Z","lost":"table orders: the first records"}],"repair":["sluice audit --route products --repair"]}`
		answer := func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintln(w, open)
			if r.Method == http.MethodPost {
				open = `{"gaps":[]}`
			}
		}
		mux.HandleFunc("GET /gaps", answer)
		mux.HandleFunc("POST /gaps/acknowledge", answer)
		token, err := access.Make(access.FileOf(s.Path()))
		ts.Check(err)
		guard := access.NewGuard(token)
		outer := http.NewServeMux()
		outer.Handle("/", guard.Protect(mux))
		outer.Handle("/session", guard.Sessions())
		outer.Handle("/session/", guard.Sessions())
		srv := httptest.NewServer(outer)
		address := access.AddressFileOf(s.Path())
		ts.Check(access.WriteAddress(address, srv.Listener.Addr()))
		if noted {
			_, err := daemons.Note(ts.Getenv, daemons.Daemon{State: s.Path(), Application: "sluice"})
			ts.Check(err)
		}
		ts.Setenv("DAEMON", srv.URL)
		ts.Setenv("LISTEN", srv.Listener.Addr().String())
		ts.Defer(func() {
			_ = os.Remove(address)
			srv.Close()
			ts.Check(s.Close())
		})
	},
}

// halfDown has two routes. The first fails for 50 items until they are parked, the
// second works.
type halfDown struct{ parked atomic.Bool }

func (h *halfDown) States() []flow.RouteState {
	search := flow.RouteState{Route: "new search"}
	if !h.parked.Load() {
		search.State, search.Failing, search.Err = flow.Partial, 50, errors.New("503: try later")
	}
	return []flow.RouteState{search, {Route: "log"}}
}

func (h *halfDown) Park(route string, dryRun bool) (parked, pending int) {
	if route != "new search" || h.parked.Load() {
		return 0, 0
	}
	h.parked.Store(!dryRun)
	return 51, 2 // two records of one item, as two tables have it
}

func TestLetterScripts(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	testscript.Run(t, testscript.Params{Dir: "testdata/oncall", Cmds: scriptCommands, Setup: func(e *testscript.Env) error {
		e.Values[testKey{}] = t
		e.Setenv("AWS_EC2_METADATA_DISABLED", "true")
		e.Setenv("AWS_REGION", "us-east-1")
		e.Setenv("AWS_ACCESS_KEY_ID", "test")
		e.Setenv("AWS_SECRET_ACCESS_KEY", "test")
		return nil
	}})
}

func sluiceNothing(context.Context, *sluice.Record) error { return nil }

var discard = slog.New(slog.DiscardHandler)
