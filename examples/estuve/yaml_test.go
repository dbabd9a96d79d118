package estuve

import (
	"context"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/router"
)

// way is one of the two ways to the same routes: by Go, and by a file.
type way struct {
	name   string
	router func(t *testing.T, d Deps, prefix string) *router.Router
}

// ways have the tests of the routes run once for each.
var ways = []way{{"go", byGo}, {"yaml", byFile}}

func each(t *testing.T, f func(t *testing.T, w way)) {
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) { f(t, w) })
	}
}

func byGo(t *testing.T, d Deps, _ string) *router.Router {
	t.Helper()
	r, err := NewRouter(d)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// byFile builds sluice.yaml on the same tables and queue.
func byFile(t *testing.T, d Deps, prefix string) *router.Router {
	t.Helper()
	app, err := load(t, prefix, d.Threshold).Build(t.Context(), config.Setup{
		AWS:    func(string) aws.Config { return aws.Config{Region: "us-east-1"} },
		Logger: slog.New(slog.DiscardHandler),
		Fakes: config.Fakes{
			Tables: d.Store.(config.Tables),
			Send:   func(ctx context.Context, _ string, m sluice.Message) error { return d.Send(ctx, m) },
			Write:  func(context.Context, string, document.Op) error { panic("Estuve writes no document") },
			Now:    d.Now,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return app.Router
}

func load(t *testing.T, prefix string, threshold int) *config.Config {
	t.Helper()
	env := map[string]string{"ESTUVE_PREFIX": prefix, "ESTUVE_THRESHOLD": strconv.Itoa(threshold)}
	c, err := config.Load("sluice.yaml", func(name string) (string, bool) { v, ok := env[name]; return v, ok })
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestFileNamesWhatGoDoes(t *testing.T) {
	w := newWorld()
	d := Deps{Tables: w.tables, Store: w, Send: w.Queue("cascades"), Now: time.Now}
	inGo, inFile := byGo(t, d, ""), byFile(t, d, "")
	names := map[string]bool{}
	for _, rt := range inFile.Routes() {
		names[rt.Name] = true
		if !rt.Redrive && rt.Name != "cascade.delete" {
			t.Errorf("%s takes no redriven record", rt.Name)
		}
	}
	for _, rt := range inGo.Routes() {
		if rt.Name != "discount points" && rt.Name != "cascade" && !names[rt.Name] {
			t.Errorf("the file has no route %q: %v", rt.Name, names)
		}
	}
}
