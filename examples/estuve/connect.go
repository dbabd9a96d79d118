package estuve

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluicehq/sluice/examples/internal/kit"
	"github.com/sluicehq/sluice/handlers/cascade"
	"github.com/sluicehq/sluice/metrics"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/run"
	"github.com/sluicehq/sluice/sinks/dynamodb"
)

// Connect returns Estuve's routes on their tables and queue.
func Connect(s run.Setup) (*router.Router, error) {
	d := Deps{Tables: Named(s.Env("ESTUVE_PREFIX")), Threshold: cascade.DefaultThreshold, Metrics: s.Metrics, Logger: s.Logger}
	for _, t := range s.Tables {
		if !slices.Contains(d.Tables.Streams(), t) {
			return nil, fmt.Errorf("estuve knows no table %q: with ESTUVE_PREFIX=%q those whose streams it reads are %s", t, s.Env("ESTUVE_PREFIX"), strings.Join(d.Tables.Streams(), ", "))
		}
	}
	if n := s.Env("ESTUVE_THRESHOLD"); n != "" {
		var err error
		if d.Threshold, err = strconv.Atoi(n); err != nil || d.Threshold < 0 {
			return nil, fmt.Errorf("ESTUVE_THRESHOLD=%q: want how many rows a record deletes itself, such as %d, or 0 for none", n, cascade.DefaultThreshold)
		}
	}
	store, err := OpenStore(s.AWS("dynamodb"), s.Env, d.Tables, s.Metrics)
	if err != nil {
		return nil, err
	}
	d.Store = store
	s.Check("tables", func(ctx context.Context) error {
		return store.Check(ctx, append(d.Tables.Streams(), d.Tables.Markers)...)
	})
	if s.Env("ESTUVE_QUEUE") != "" {
		queue, err := kit.StandardQueue(s, "ESTUVE_QUEUE", "of cascades", "delete points", "delete maps", "cascade")
		if err != nil {
			return nil, err
		}
		d.Send = queue.Send
	}
	return NewRouter(d)
}

// OpenStore returns the tables. ESTUVE_BUDGET bounds what cascades take of
// points, in write units a second.
func OpenStore(cfg aws.Config, env func(string) string, t Tables, m metrics.Meter) (*dynamodb.Store, error) {
	o := dynamodb.Options{Keys: t.Keys(), Metrics: m}
	if b := env("ESTUVE_BUDGET"); b != "" {
		units, err := strconv.ParseFloat(b, 64)
		if err != nil || !(units > 0) {
			return nil, fmt.Errorf("ESTUVE_BUDGET=%q: want write units a second, such as 500", b)
		}
		o.Budget = map[string]float64{t.Points: units}
	}
	return dynamodb.New(cfg, o)
}
