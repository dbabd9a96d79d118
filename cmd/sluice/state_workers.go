package main

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/sluicehq/sluice/internal/holders"
	"github.com/sluicehq/sluice/internal/statestore"
)

// workerState is a worker of daemons that share a state table.
type workerState struct {
	Name   string        `json:"name"`
	State  holders.State `json:"state"`
	Config string        `json:"config,omitempty"` // fingerprint of its configuration
	Ended  time.Time     `json:"ended,omitzero"`
	Shards int           `json:"shards"`
	Jobs   []string      `json:"jobs,omitempty"` // that it has, such as segments of a backfill

	Report *holders.Report `json:"report,omitempty"` // of the last seconds, of a living worker
}

// readWorkers returns the workers of an application; none of a state file.
func readWorkers(ctx context.Context, store statestore.Store, app string) ([]holders.Worker, error) {
	if shared, ok := store.(holders.Fleet); ok {
		return holders.List(ctx, shared, app)
	}
	return nil, nil
}

// addHolders adds to shards what is known of their owners.
func addHolders(streams []streamState, workers []holders.Worker) {
	at := make(map[[2]string]*shardState)
	for _, st := range streams {
		for i := range st.Shards {
			at[[2]string{st.ARN, st.Shards[i].ID}] = &st.Shards[i]
		}
	}
	for _, w := range workers {
		for _, h := range w.Shards {
			if sh := at[[2]string{h.StreamARN, h.ShardID}]; sh != nil && sh.Owner == w.Name { // else it changed hands meanwhile
				sh.OwnerState, sh.Claimed, sh.Moved = w.State, h.Claimed, h.Moved
			}
		}
	}
}

// printWorkers lists the workers that live or have shards, and counts the others. It says
// so when the configurations of living workers differ.
func (c *cli) printWorkers(all []workerState) error {
	t, ended := &table{heads: []string{"  WORKER", "STATE", "SHARDS", "LAG", "HELD", "CONFIG"}}, 0
	configs := make(map[string]bool)
	for _, w := range all {
		if w.State == holders.Living && w.Config != "" {
			configs[w.Config] = true
		}
		if w.State == holders.Fenced && w.Shards == 0 {
			ended++
			continue
		}
		lag, held := "-", "-"
		if r := w.Report; r != nil {
			lag, held = (time.Duration(r.Lag()) * time.Second).String(), strconv.Itoa(r.Held)
		}
		t.row("  "+w.Name, w.State, w.Shards, lag, held, cmp.Or(w.Config, "-"))
	}
	if len(t.rows) > 0 {
		if err := t.print(c.stdout, c.stderr, "--json has all of it"); err != nil {
			return err
		}
	}
	for _, w := range all {
		if len(w.Jobs) > 0 {
			fmt.Fprintf(c.stdout, "  %s has %s, such as %s\n", w.Name, plural(len(w.Jobs), "job", "jobs"), w.Jobs[0])
		}
	}
	if ended > 0 {
		fmt.Fprintf(c.stdout, "  %s ended in the last 7 days\n", plural(ended, "worker", "workers"))
	}
	if len(configs) > 1 {
		fmt.Fprintf(c.stdout, "  the living workers run %d configurations: %s\n", len(configs), holders.Differ)
	}
	return nil
}

// shardTable has the shards of a stream in rows; of a state table with their times.
func shardTable(s streamState, shared bool) *table {
	t := &table{heads: []string{"  SHARD", "SETTLED TO", "CREATED", "PARENT", "EPOCH", "OWNER"}, whole: []string{"  SHARD"}}
	if shared {
		t.heads = append(t.heads, "SINCE", "MOVED")
	}
	for _, sh := range s.Shards {
		created := "-"
		if !sh.Created.IsZero() {
			created = sh.Created.Format(time.DateOnly)
		}
		owner := cmp.Or(sh.Owner, "-")
		if sh.OwnerState != "" && sh.OwnerState != holders.Living {
			owner = string(sh.OwnerState) + " " + owner
		}
		cells := []any{"  " + sh.ID, sh.settledTo(s.Start), created, cmp.Or(endOfShard(sh.Parent), "-"), sh.Epoch, owner}
		if shared {
			cells = append(cells, ago(sh.Claimed), ago(sh.Moved))
		}
		t.row(cells...)
	}
	return t
}

// ago says how long ago a time was, in one unit; "-" of none.
func ago(t time.Time) string {
	d := max(0, time.Since(t)) // it may be of another clock
	switch {
	case t.IsZero():
		return "-"
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds ago", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh ago", int(d.Hours()))
	}
	return fmt.Sprintf("%dd ago", int(d.Hours()/24))
}
