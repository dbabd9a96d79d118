package main

import (
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/state"
	"github.com/sluicehq/sluice/state/boltstate"
)

// state list sorts by table, not by ARN, and shards by their creation.
func TestOrderOfState(t *testing.T) { synctest.Test(t, orderOfState) }

func orderOfState(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	store, err := boltstate.Open(path, boltstate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const table = "arn:aws:dynamodb:eu-west-1:000000000000:table/"
	streams := []string{table + "orders/stream/2026-01-01T00:00:00.000", table + "orders/stream/2026-02-01T00:00:00.000", table + "orders-2/stream/2026-01-01T00:00:00.000"}
	shards := []string{"shardId-00000001767225600000-9", "shardId-00000001767225600001-1", "shardId-00000001767225600001-2"}
	box := deadletter.NewBox(store, "sluice")
	sequences := []sluice.Sequence{"300000000003498069978", "400000000003498069978", "100000000003498069978"}
	for i := range 3 {
		stream := state.Stream{Application: "sluice", ARN: streams[2-i]}
		if _, err := store.Start(t.Context(), stream, state.Start{Position: "LATEST", At: time.Now()}); err != nil {
			t.Fatal(err)
		}
		first := state.Stream{Application: "sluice", ARN: streams[0]}
		if _, err := store.Claim(t.Context(), first, shards[2-i], "", "me"); err != nil {
			t.Fatal(err)
		}
		name := []string{"orders", "orders", "orders-2"}[i]
		if err := box.ParkGap(t.Context(), &sluice.Gap{Table: name, StreamARN: streams[i], ShardID: shards[0], After: sequences[i], Found: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	for name, of := range map[string]string{"first": "orders-2", "second": "orders"} {
		if err := store.PutValue(t.Context(), "sluice", "backfill/"+name+"/"+table+of, []byte(`{"generation":"g","segments":1}`)); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	printed := func(args ...string) string {
		t.Helper()
		var stdout strings.Builder
		c := &cli{lookup: func(string) (string, bool) { return "", false }, stdin: strings.NewReader(""), stdout: &stdout, stderr: io.Discard}
		if code := c.execute(t.Context(), append([]string{"state"}, append(args, "--state", path)...)); code != 0 {
			t.Fatal(code)
		}
		return stdout.String()
	}
	for _, tt := range []struct {
		args []string
		find string
		want []string
	}{
		{[]string{"list", "--json"}, `"arn": "(\S+)"`, streams},
		{[]string{"list"}, `(?m)^  backfill (\S+)`, []string{"second", "first"}},
		{[]string{"list"}, `records after (\d+)`, []string{"300000000003498069978", "400000000003498069978", "100000000003498069978"}},
		{[]string{"show", "orders"}, `(?m)^  (shardId-\S+)`, shards},
		{[]string{"list", "--json"}, `"id": "(\S+)"`, shards},
	} {
		text := printed(tt.args...)
		var got []string
		for _, m := range regexp.MustCompile(tt.find).FindAllStringSubmatch(text, -1) {
			got = append(got, m[1])
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%v: %q, want %q:\n%s", tt.args, got, tt.want, text)
		}
	}
}
