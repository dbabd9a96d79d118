// Command main runs Manhunt, and Reflex beside it: as a Lambda function where
// Lambda starts it, as a daemon everywhere else. With a command it makes the tables,
// opens, answers or cancels a search, or shows rows.
package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/examples/manhunt"
	"github.com/sluicehq/sluice/examples/manhunt/reflex"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/run"
)

func main() { program.Main(app(time.Now)) }

func app(now func() time.Time) run.App {
	return run.App{
		Name:   "manhunt",
		Tables: []string{manhunt.DefaultTable},
		Routes: func(_ context.Context, s run.Setup) (sluice.Matcher, error) { return routes(s, now) },
	}
}

// routes makes Manhunt's routes on the first table, and Reflex's on the second,
// if there is one.
func routes(s run.Setup, now func() time.Time) (sluice.Matcher, error) {
	if len(s.Tables) > 2 {
		return nil, fmt.Errorf("--table (SLUICE_TABLES): want Manhunt's table, and after it Reflex's if there is one, not %d: %s", len(s.Tables), strings.Join(s.Tables, ", "))
	}
	d, err := manhunt.Connect(s, now)
	if err != nil {
		return nil, err
	}
	if !s.Lambda && len(s.Queues) == 0 {
		s.Logger.Warn("no queue is consumed: attempts are left to another process; --queue (SLUICE_QUEUES) names one")
	}
	r := router.New(manhunt.TypeFrom())
	if len(s.Tables) == 2 {
		if d.Notify == nil {
			d.Notify = d.Send // one queue for all messages
		}
		err := reflex.Register(r, reflex.Deps{Store: d.Store, Table: s.Tables[1], Manhunt: d.Table, Send: d.Notify, Now: now})
		if err != nil {
			return nil, err
		}
	}
	return r, manhunt.Register(r, d)
}
