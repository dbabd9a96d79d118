package daemon

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/snapshot"
	"github.com/sluicehq/sluice/internal/tally"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/streamtest"
)

func TestUntypedIsToldOnce(t *testing.T) {
	log := &sharedLog{}
	u := &unrouted{logger: slog.New(slog.NewTextHandler(log, nil))}
	saw := u.saw
	for _, table := range []string{"orders", "orders", "lines"} {
		saw(&sluice.Record{Table: table, EventName: sluice.Insert, Sequence: "977119800000398701107540001"}, router.NoRoute)
		saw(&sluice.Record{Table: table, EventName: sluice.Insert, Sequence: "977119800000398701107540001"}, router.Filtered)
		saw(&sluice.Record{Table: table, EventName: sluice.Insert, Sequence: "977119800000398701107540001"}, router.Untyped)
	}
	if text := log.String(); strings.Count(text, "level=WARN") != 2 || !strings.Contains(text, "table=orders event=INSERT sequence=977119800000398701107540001") || !strings.Contains(text, "table=lines") {
		t.Errorf("%s", text)
	}
	if u.n.Load() != 9 {
		t.Errorf("%d counted, want 9", u.n.Load())
	}
}

// wrapped is an application's Matcher around a router.
type wrapped struct{ sluice.Matcher }

func (w wrapped) Unwrap() sluice.Matcher { return w.Matcher }

// The daemon observes a router inside an application's own Matcher, too.
func TestRouterInsideIsObserved(t *testing.T) {
	for name, wrap := range map[string]func(*router.Router) sluice.Matcher{
		"a router":      func(r *router.Router) sluice.Matcher { return r },
		"in two others": func(r *router.Router) sluice.Matcher { return wrapped{wrapped{r}} },
	} {
		r := router.New()
		r.Handle("a#INSERT", func(context.Context, *sluice.Record) error { return nil })
		var counts tally.Tally
		u := &unrouted{logger: slog.New(slog.DiscardHandler)}
		m := wrap(r)
		Setup{Metrics: &counts, unrouted: u}.observe(m)
		if _, err := m.Match(nil, &sluice.Record{EventName: sluice.Remove, Table: "t"}); err != nil {
			t.Fatal(err)
		}
		if counts.Sum("sluice_unrouted_total") != 1 || u.n.Load() != 1 {
			t.Errorf("%s: %d counted, %d told", name, counts.Sum("sluice_unrouted_total"), u.n.Load())
		}
	}
}

// A backfill whose items all take no route is over, and has done nothing.
func TestBackfillOfNothing(t *testing.T) {
	noAWS(t)
	c := newCloud(t, `{"id":{"S":"one"}}`, `{"id":{"S":"two"},"entityType":{"S":"item"}}`)
	c.CreateTable("orders", streamtest.TableOptions{PartitionKey: "id"})
	server := httptest.NewServer(c)
	defer server.Close()
	for typ, want := range map[string][]string{
		"item":  {"a record has no entity type"},
		"other": {"a record has no entity type", `msg="no item took a route: nothing was written" table=orders items=2`},
	} {
		var o Options
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		o.AddFlags(flags)
		o.Tables, o.Endpoint, o.State = []string{"orders"}, server.URL, filepath.Join(t.TempDir(), "state.db")
		app := App{Name: "shop", Routes: func(_ context.Context, s Setup) (sluice.Matcher, error) {
			r := router.New()
			r.Handle(typ+"#SNAPSHOT", func(context.Context, *sluice.Record) error { return nil })
			return r, nil
		}}
		log := &sharedLog{}
		if err := Backfill(t.Context(), app, o, snapshot.Options{WithoutStream: true}, os.Getenv, log); err != nil {
			t.Fatal(err)
		}
		if text := log.String(); strings.Count(text, "level=WARN") != len(want) || !strings.Contains(text, want[0]) || !strings.Contains(text, want[len(want)-1]) {
			t.Errorf("%s: %s\nwant %q", typ, text, want)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}
