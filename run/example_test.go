package run_test

import (
	"context"
	"log/slog"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/run"
)

// A whole program: `shop --start LATEST` is the daemon; given to Lambda it is
// the function.
func ExampleMain() {
	run.Main(run.App{
		Name:   "shop",
		Tables: []string{"orders"},
		Routes: func(_ context.Context, s run.Setup) (sluice.Matcher, error) {
			r := router.New()
			r.Handle("order#INSERT", func(ctx context.Context, rec *sluice.Record) error {
				s.Logger.LogAttrs(ctx, slog.LevelInfo, "a new order", slog.String("event", rec.EventID))
				return nil
			})
			return r, nil
		},
	})
}
