package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice/internal/backoff"
	"github.com/sluicehq/sluice/internal/holders"
	"github.com/sluicehq/sluice/internal/localstack"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/sinks/dynamodb"
	"github.com/sluicehq/sluice/state/dynamostate"
)

const (
	sluiceMain  = "./cmd/sluice"
	fleetName   = "fleet"
	fleetTables = 4 // of one shard each
	fleetConfig = `name: ` + fleetName + `
source: {tables: [%s], start: TRIM_HORIZON}
daemon: {state: "dynamodb:%s"}
sinks:
  effects: {sqs: {queue: %q}}
routes:
  - {name: effect, on: "*#*", send: {to: effects, body: '{"item":"{id}","version":{version}}'}}
`
)

// fleet is what two daemons share.
type fleet struct {
	*demo
	program, config string
	tables          []string
	queue           string
	items           *dynamodb.Store
	state           *dynamostate.Store
}

// byFleet kills one of two daemons without a warning: the other takes its shards over
// and handles the next changes.
func (d *demo) byFleet(ctx context.Context) error {
	d.title("7. Fleet: two daemons share a state table, and one is killed")
	program := filepath.Join(d.dir, "sluice")
	if err := localstack.Build(ctx, program, sluiceMain); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, 8*patience, fmt.Errorf("the fleet did not come to its end within %v", 8*patience))
	defer cancel()
	f, err := d.newFleet(ctx, program)
	if err != nil {
		return err
	}
	a, err := f.start()
	if err != nil {
		return err
	}
	defer a.Kill()
	if err := f.share(ctx, fleetTables); err != nil {
		return a.Failure(err)
	}
	d.row("worker A", "pid %d reads %d tables, of one shard each", a.Pid(), fleetTables)
	b, err := f.start()
	if err != nil {
		return err
	}
	defer b.Kill()
	began := time.Now()
	if err := f.share(ctx, fleetTables/2, fleetTables/2); err != nil {
		return b.Failure(err)
	}
	d.row("worker B", "pid %d has its share after %s: %d shards each", b.Pid(), seconds(time.Since(began)), fleetTables/2)
	if err := f.change(ctx, "1"); err != nil {
		return b.Failure(err)
	}
	d.row("changes", "one in each table, %s", green("all handled"))
	began = time.Now()
	a.Kill()
	d.row("kill -9", "worker A; then one more change in each table")
	if err := f.change(ctx, "2"); err != nil {
		return b.Failure(err)
	}
	d.row("taken over", "%s, the last %s after the kill", green("all handled by worker B"), bold(seconds(time.Since(began))))
	if err := f.share(ctx, fleetTables); err != nil {
		return b.Failure(err)
	}
	d.row("shards", "%d of %d are worker B's", fleetTables, fleetTables)
	return b.Stop()
}

// newFleet makes tables, queue, configuration and state table, as a user would.
func (d *demo) newFleet(ctx context.Context, program string) (*fleet, error) {
	name := d.table + "-fleet"
	f := &fleet{demo: d, program: program, config: filepath.Join(d.dir, "fleet.yaml")}
	for i := range fleetTables {
		f.tables = append(f.tables, fmt.Sprintf("%s-%d", name, i+1))
		if err := d.world.createProducts(ctx, f.tables[i]); err != nil {
			return nil, err
		}
	}
	var err error
	if f.queue, err = d.world.createQueue(ctx, name); err != nil {
		return nil, err
	}
	if f.items, err = dynamodb.New(d.world.cfg, dynamodb.Options{}); err != nil {
		return nil, err
	}
	if f.state, err = dynamostate.New(d.world.cfg, name+"-state"); err != nil {
		return nil, err
	}
	text := fmt.Sprintf(fleetConfig, strings.Join(f.tables, ", "), name+"-state", f.queue)
	if err := os.WriteFile(f.config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	create := exec.CommandContext(ctx, f.program, "state", "create", "--config", f.config)
	create.Env = f.environ()
	if out, err := create.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("sluice state create: %w\n%s", err, out)
	}
	d.row("state table", "%s-state, made by sluice state create", name)
	return f, nil
}

// environ leaves the tables to the configuration.
func (f *fleet) environ() []string { return append(f.daemonEnv(f.queue), "SLUICE_TABLES=") }

func (f *fleet) start() (*daemon, error) {
	return startDaemon(f.program, []string{"run", "--config", f.config, "--listen", "off", "--log-format", "json"}, f.environ())
}

// share waits until the living workers have so many shards, in ascending order.
func (f *fleet) share(ctx context.Context, want ...int) error {
	for {
		workers, err := f.state.Workers(ctx, fleetName)
		if err != nil {
			return errors.Join(err, context.Cause(ctx))
		}
		var have []int
		for _, w := range workers {
			if w.State == holders.Living {
				have = append(have, len(w.Shards))
			}
		}
		if slices.Sort(have); slices.Equal(have, want) {
			return nil
		}
		if err := backoff.Sleep(ctx, watchEvery); err != nil {
			return fmt.Errorf("the workers have %v shards, want %v: %w", have, want, context.Cause(ctx))
		}
	}
}

// change writes an item's version to each table and waits for the messages. Those of
// an earlier version may come again.
func (f *fleet) change(ctx context.Context, version string) error {
	missing := make(map[string]bool)
	for _, table := range f.tables {
		if err := f.items.Put(ctx, table, item.Of(item.String("id", table), item.Number("version", version))); err != nil {
			return err
		}
		missing[fmt.Sprintf(`{"item":%q,"version":%s}`, table, version)] = true
	}
	for len(missing) > 0 {
		m, err := f.world.receive(ctx, f.queue)
		if err != nil {
			return fmt.Errorf("%d of %d changes are not handled: %w", len(missing), fleetTables, err)
		}
		delete(missing, m.body)
	}
	return nil
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
