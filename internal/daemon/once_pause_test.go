package daemon

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/pauses"
	"github.com/sluicehq/sluice/internal/snapshot"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/state/boltstate"
	"github.com/sluicehq/sluice/streamtest"
)

// A backfill of its own waits for a paused route, too.
func TestBackfillOfAPausedRoute(t *testing.T) {
	noAWS(t)
	c := newCloud(t, `{"id":{"S":"one"},"entityType":{"S":"item"}}`)
	c.CreateTable("orders", streamtest.TableOptions{PartitionKey: "id"})
	server := httptest.NewServer(c)
	defer server.Close()
	defer http.DefaultClient.CloseIdleConnections()
	var o Options
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.AddFlags(flags)
	o.Tables, o.Endpoint, o.State = []string{"orders"}, server.URL, filepath.Join(t.TempDir(), "state.db")
	s, err := boltstate.Open(o.State, boltstate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const length = 3 * time.Second
	ends := time.Now().Add(length)
	if _, err := pauses.Set(t.Context(), s, "shop", pauses.New("items", length, 0, 0)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var called time.Time
	app := App{Name: "shop", Routes: func(context.Context, Setup) (sluice.Matcher, error) {
		r := router.New()
		r.Handle("item#SNAPSHOT", func(context.Context, *sluice.Record) error { called = time.Now(); return nil }, router.Name("items"))
		return r, nil
	}}
	log := &sharedLog{}
	if err := Backfill(t.Context(), app, o, snapshot.Options{WithoutStream: true}, os.Getenv, log); err != nil {
		t.Fatal(err)
	}
	if early := ends.Sub(called); called.IsZero() || early > 100*time.Millisecond {
		t.Errorf("called %v before the end of the pause\n%s", early, log)
	}
}
