package estuve

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluicehq/sluice/handlers/cascade"
	"github.com/sluicehq/sluice/metrics"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/sinks/dynamodb"
	"github.com/sluicehq/sluice/sinks/sqs"
)

// Connection says where Estuve's tables and queue are.
type Connection struct {
	DynamoDB, SQS aws.Config
	Tables        []string                 // whose streams are read: all three, or some of them
	Env           func(name string) string // ESTUVE_PREFIX, ESTUVE_QUEUE, ESTUVE_THRESHOLD, ESTUVE_BUDGET

	// Check is given the checks of tables and queue, as run.Setup.Check is; nil: they
	// are not made.
	Check func(sink string, check func(context.Context) error, routes ...string)

	Metrics metrics.Meter // nil: none
	Logger  *slog.Logger  // default slog.Default()
}

// Connect returns Estuve's routes on their tables and queue.
func Connect(c Connection) (*router.Router, error) {
	if c.Check == nil {
		c.Check = func(string, func(context.Context) error, ...string) {}
	}
	d := Deps{Tables: Named(c.Env("ESTUVE_PREFIX")), Threshold: cascade.DefaultThreshold, Metrics: c.Metrics, Logger: c.Logger}
	for _, t := range c.Tables {
		if !slices.Contains(d.Tables.Streams(), t) {
			return nil, fmt.Errorf("estuve knows no table %q: with ESTUVE_PREFIX=%q those whose streams it reads are %s", t, c.Env("ESTUVE_PREFIX"), strings.Join(d.Tables.Streams(), ", "))
		}
	}
	if n := c.Env("ESTUVE_THRESHOLD"); n != "" {
		var err error
		if d.Threshold, err = strconv.Atoi(n); err != nil || d.Threshold < 0 {
			return nil, fmt.Errorf("ESTUVE_THRESHOLD=%q: want how many rows a record deletes itself, such as %d, or 0 for none", n, cascade.DefaultThreshold)
		}
	}
	store, err := OpenStore(c, d.Tables)
	if err != nil {
		return nil, err
	}
	d.Store = store
	c.Check("tables", func(ctx context.Context) error {
		return store.Check(ctx, append(d.Tables.Streams(), d.Tables.Markers)...)
	})
	if name := c.Env("ESTUVE_QUEUE"); name != "" {
		if strings.HasSuffix(name, ".fifo") {
			return nil, fmt.Errorf("ESTUVE_QUEUE=%s is a FIFO queue, which cannot delay a message: want a standard queue", name)
		}
		queue, err := sqs.New(c.SQS, name, sqs.Options{Metrics: c.Metrics, Logger: c.Logger})
		if err != nil {
			return nil, err
		}
		c.Check("ESTUVE_QUEUE", queue.Check, "delete points", "delete maps", "cascade")
		d.Send = queue.Send
	}
	return NewRouter(d)
}

// OpenStore returns the tables. ESTUVE_BUDGET bounds what cascades take of
// points, in write units a second.
func OpenStore(c Connection, t Tables) (*dynamodb.Store, error) {
	o := dynamodb.Options{Keys: t.Keys(), Metrics: c.Metrics}
	if b := c.Env("ESTUVE_BUDGET"); b != "" {
		units, err := strconv.ParseFloat(b, 64)
		if err != nil || !(units > 0) {
			return nil, fmt.Errorf("ESTUVE_BUDGET=%q: want write units a second, such as 500", b)
		}
		o.Budget = map[string]float64{t.Points: units}
	}
	return dynamodb.New(c.DynamoDB, o)
}
