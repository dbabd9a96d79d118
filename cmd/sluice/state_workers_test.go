package main

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/internal/holders"
	"github.com/sluicehq/sluice/internal/statestore"
	"github.com/sluicehq/sluice/state"
)

// fleetStore is a file that lists workers as a table does.
type fleetStore struct {
	statestore.Store
	workers []holders.Worker
}

func (fleetStore) Publish(string) {}

func (s fleetStore) Workers(context.Context, string) ([]holders.Worker, error) {
	return s.workers, nil
}

// Who holds which shard is shown to people and to programs.
func TestWorkersAreShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file, err := statestore.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"), statestore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close() //nolint:errcheck // of a test's folder
		st := state.Stream{Application: "shop", ARN: "arn:aws:dynamodb:us-east-1:1:table/orders/stream/2026-01-01T00:00:00.000"}
		for id, owner := range map[string]string{"shard-1": "host/1/A", "shard-2": "host/2/B", "shard-3": "host/2/B", "shard-4": "host/3/C"} {
			if _, err := file.Claim(t.Context(), st, id, "", owner); err != nil {
				t.Fatal(err)
			}
		}
		now := time.Now().UTC().Truncate(time.Second)
		held := func(id string) holders.Held {
			return holders.Held{StreamARN: st.ARN, ShardID: id, Claimed: now.Add(-3 * time.Hour), Moved: now.Add(-5 * time.Second)}
		}
		store := fleetStore{file, []holders.Worker{
			{Name: "host/0/Z", State: holders.Fenced, Ended: now.Add(-time.Hour)},
			{Name: "host/1/A", State: holders.Living, Config: "aaaa1111", Shards: []holders.Held{held("shard-1")}},
			{Name: "host/2/B", State: holders.Silent, Config: "cccc3333", Shards: []holders.Held{held("shard-2"), held("shard-3")}},
			{Name: "host/3/C", State: holders.Fenced},
			{Name: "host/4/D", State: holders.Living, Config: "bbbb2222"},
			{Name: "host/9/X", State: holders.Living, Shards: []holders.Held{held("shard-4")}}, // claimed between two reads
		}}
		of := holders.Reporter{Store: store, App: "shop"}
		if err := of.Report(t.Context(), "host/1/A", holders.Report{At: now, Held: 7, Tables: []holders.TableReport{{Table: "users"}, {Table: "orders", LagSeconds: 90, Unsettled: 5}}}); err != nil {
			t.Fatal(err)
		}
		a, err := readApplication(t.Context(), store, "shop")
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		c := &cli{stdout: &out, stderr: &out}
		if err := c.printStates([]applicationState{a}); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"\n  WORKER    STATE   SHARDS  LAG    HELD  CONFIG\n  host/1/A  living  1       1m30s  7     aaaa1111\n  host/2/B  silent  2       -      -     cccc3333\n  host/4/D  living  0       -      -     bbbb2222\n  host/9/X  living  1       -      -     -\n" +
				"  2 workers ended in the last 7 days\n  the living workers run 2 configurations: each handles its shards by its own. ",
		} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s\nwant %s", &out, want)
			}
		}
		out.Reset()
		a.Workers = slices.DeleteFunc(a.Workers, func(w workerState) bool { return w.Name == "host/4/D" })
		if err := c.printStates([]applicationState{a}); err != nil || strings.Contains(out.String(), "configurations") {
			t.Errorf("of one configuration: %v\n%s", err, &out)
		}
		out.Reset()
		if err := shardTable(a.Streams[0], true).print(&out, &out, ""); err != nil {
			t.Fatal(err)
		}
		var rows []string
		for line := range strings.Lines(out.String()) {
			rows = append(rows, strings.Join(strings.Fields(line), " "))
		}
		if got, want := strings.Join(rows, "\n"), `SHARD SETTLED TO CREATED PARENT EPOCH OWNER SINCE MOVED
shard-1 the beginning - - 1 host/1/A 3h ago 5s ago
shard-2 the beginning - - 1 silent host/2/B 3h ago 5s ago
shard-3 the beginning - - 1 silent host/2/B 3h ago 5s ago
shard-4 the beginning - - 1 host/3/C - -`; got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
		out.Reset()
		latest := a.Streams[0]
		latest.Start = "LATEST"
		if err := shardTable(latest, true).print(&out, &out, ""); err != nil || strings.Count(out.String(), "the start") != 4 {
			t.Errorf("at LATEST: %v\n%s", err, &out)
		}
		data, err := json.Marshal(a)
		for _, want := range []string{
			`{"id":"shard-1","finished":false,"owner":"host/1/A","epoch":1,"ownerState":"living","claimed":"1999-12-31T21:00:00Z","moved":"1999-12-31T23:59:55Z"}`,
			`"workers":[{"name":"host/0/Z","state":"fenced","ended":"1999-12-31T23:00:00Z","shards":0},{"name":"host/1/A","state":"living","config":"aaaa1111","shards":1,"report":{"at":"2000-01-01T00:00:00Z","tables":[{"table":"orders","lagSeconds":90,"unsettled":5},`,
		} {
			if err != nil || !strings.Contains(string(data), want) {
				t.Errorf("%s, %v\nwant %s", data, err, want)
			}
		}
	})
}

func TestAgo(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Hour: "0s ago", 119 * time.Second: "119s ago", 2 * time.Minute: "2m ago", 119 * time.Minute: "119m ago",
		2 * time.Hour: "2h ago", 47 * time.Hour: "47h ago", 49 * time.Hour: "2d ago",
	} {
		synctest.Test(t, func(t *testing.T) {
			if got := ago(time.Now().Add(-d)); got != want {
				t.Errorf("%v: %s, want %s", d, got, want)
			}
		})
	}
	if got := ago(time.Time{}); got != "-" {
		t.Errorf("never: %s", got)
	}
}
