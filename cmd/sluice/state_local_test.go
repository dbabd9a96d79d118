//go:build integration

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/internal/statestore"
	"github.com/sluicehq/sluice/state"
	"github.com/sluicehq/sluice/state/dynamostate"
)

// A table is made, takes the state of a file, is shown, reset and changed as a file
// is, and gives the state back.
func TestStateTable(t *testing.T) {
	o := newOncall(t)
	table := localtest.Name("state")
	place, file, back := "dynamodb:"+table, filepath.Join(o.dir, "sluice.db"), filepath.Join(o.dir, "back.db")
	o.run(1, "state", "list", "--state", place)
	if want := "This command makes the table: sluice state create --state " + place; !strings.Contains(o.stderr.String(), want) {
		t.Errorf("%s\nwant %s", &o.stderr, want)
	}
	t.Cleanup(func() {
		if _, err := dynamodb.NewFromConfig(localtest.DynamoDB(t)).DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &table}); err != nil {
			t.Error(err)
		}
	})
	recs := streamOf(t, "a", "b")
	o.table = recs[0].Table
	o.config("  - {name: log, on: \"*#*\", redrive: true, log: {}}\ndaemon: {state: \"" + place + "\"}\n")
	o.run(1, "validate", "--connect")
	if want := "sluice.yaml:5:17: daemon.state: "; !strings.Contains(o.stderr.String(), want) || !strings.Contains(o.stderr.String(), "sluice state create --state "+place) {
		t.Errorf("%s\nwant %s", &o.stderr, want)
	}
	for range 2 {
		o.run(0, "state", "create", "--state", place, "--tag", "team=orders")
		if want := "Start a daemon: sluice run --state " + place; !strings.Contains(o.stdout.String(), want) {
			t.Errorf("%s\nwant %s", &o.stdout, want)
		}
	}
	o.run(0, "state", "list", "--state", place)
	o.run(0, "validate", "--connect")

	store, err := statestore.Open(t.Context(), file, statestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	stream := state.Stream{Application: "sluice", ARN: recs[0].StreamARN}
	if _, err := store.Start(t.Context(), stream, state.Start{Position: "TRIM_HORIZON"}); err != nil {
		t.Fatal(err)
	}
	sh, err := store.Claim(t.Context(), stream, recs[0].ShardID, "", "worker")
	if err != nil {
		t.Fatal(err)
	}
	l := state.Lease{Stream: stream, ShardID: sh.ID, Owner: sh.Owner, Epoch: sh.Epoch}
	for _, err := range store.Checkpoint(t.Context(), []state.Checkpoint{{Lease: l, Position: state.Position{Sequence: string(recs[0].Sequence)}}}) {
		t.Fatal(err)
	}
	box := deadletter.NewBox(store, "sluice")
	for i := range recs {
		if err := box.Park(t.Context(), &recs[i], sluice.Failure{Route: "log", Attempts: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}

	shown := o.run(0, "state", "show", recs[0].Table, "--state", file, "--json")
	o.run(0, "state", "copy", "--from", file, "--to", place)
	if got := o.stdout.String(); got != "copied application sluice: 1 stream, 1 shard, 2 dead letters\n" {
		t.Error(got)
	}
	o.run(0, "state", "show", recs[0].Table, "--state", place)
	if !strings.Contains(o.stdout.String(), string(recs[0].Sequence)) {
		t.Errorf("%s\nwant the position %s", &o.stdout, recs[0].Sequence)
	}
	if got := o.run(0, "dlq", "list", "--state", place); strings.Count(got, "log") != 2 {
		t.Errorf("two letters: %s", got)
	}
	o.run(0, "dlq", "redrive", "--all", "--state", place)
	if got := o.run(0, "dlq", "list", "--state", place, "--json"); strings.Contains(got, `"log"`) {
		t.Errorf("after a redrive: %s", got)
	}
	o.run(0, "state", "copy", "--from", place, "--to", back)
	if got := o.run(0, "state", "show", recs[0].Table, "--state", back, "--json"); position(got) != position(shown) {
		t.Errorf("it comes back as %s, and was %s", got, shown)
	}
	shared, err := dynamostate.New(localtest.DynamoDB(t), table)
	if err != nil {
		t.Fatal(err)
	}
	shared.Publish("1a2b3c4d")
	if _, err := shared.Claim(t.Context(), stream, recs[0].ShardID, "", "worker-1"); err != nil {
		t.Fatal(err)
	}
	if err := shared.Close(); err != nil {
		t.Fatal(err)
	}
	if got := o.run(0, "state", "list", "--state", place); !strings.Contains(got, "\n  worker-1  fenced  1       -    -     1a2b3c4d\n") {
		t.Errorf("%s\nwant the worker", got)
	}
	if got := o.run(0, "state", "show", recs[0].Table, "--state", place); !regexp.MustCompile(`  fenced worker-1 +\d+s ago +\d+s ago\n`).MatchString(got) {
		t.Errorf("%s\nwant the worker", got)
	}
	o.run(0, "state", "reset", recs[0].Table, "--to", "TRIM_HORIZON", "--yes", "--state", place)
	if got := o.run(0, "state", "show", recs[0].Table, "--state", place, "--json"); strings.Contains(got, "position") {
		t.Errorf("after a reset: %s", got)
	}
}

// position is the line of a shard's position.
func position(shown string) string {
	_, rest, _ := strings.Cut(shown, `"position": `)
	line, _, _ := strings.Cut(rest, "\n")
	return line
}

// A lease table of KCL becomes a state, unless a worker still writes leases.
func TestImportOfKCL(t *testing.T) {
	o := newOncall(t)
	recs := streamOf(t, "a", "b")
	o.table = recs[0].Table
	o.config("  - {name: log, on: \"*#*\", log: {}}\n")
	db, leases := dynamodb.NewFromConfig(localtest.DynamoDB(t)), localtest.Name("kcl")
	if _, err := db.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: &leases, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("leaseKey"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("leaseKey"), KeyType: types.KeyTypeHash}},
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = db.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &leases})
	})
	o.run(1, "state", "import-kcl", leases, "--wait", "1ms")
	if !strings.Contains(o.stderr.String(), "has no lease") {
		t.Error(o.stderr.String())
	}
	write := func(checkpoint string, counter int) {
		t.Helper()
		if _, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &leases, Item: map[string]types.AttributeValue{
			"leaseKey":     &types.AttributeValueMemberS{Value: recs[0].ShardID},
			"checkpoint":   &types.AttributeValueMemberS{Value: checkpoint},
			"leaseOwner":   &types.AttributeValueMemberS{Value: "worker-1"},
			"leaseCounter": &types.AttributeValueMemberN{Value: fmt.Sprint(counter)},
		}}); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(code int, want string, more ...string) {
		t.Helper()
		o.run(code, append([]string{"state", "import-kcl", leases, "--wait", "1ms", "--state", filepath.Join(o.dir, "new.db")}, more...)...)
		if !strings.Contains(o.stderr.String(), want) {
			t.Errorf("%s\nwant %s", &o.stderr, want)
		}
	}
	write("LATEST", 1)
	refused(2, "--stream: the leases do not name their stream")
	refused(1, "Say --latest TRIM_HORIZON", "--stream", recs[0].Table)
	refused(2, `--latest: "x" is not one of`, "--latest", "x")
	write(string(recs[0].Sequence), 1)
	refused(1, "--stream: table no-such-table: ", "--stream", "no-such-table")
	other := streamOf(t, "x")
	refused(1, "has none of the shards of the leases", "--stream", other[0].Table)
	refused(2, "is not the ARN of a stream", "--stream", "arn:aws:s3:::x")

	beating, stop := context.WithCancel(t.Context())
	var worker sync.WaitGroup
	worker.Go(func() {
		for i := 2; beating.Err() == nil; i++ {
			write(string(recs[0].Sequence), i)
		}
	})
	refused(1, "KCL workers run, and write leases: worker-1: stop them first", "--stream", recs[0].Table, "--wait", "2s")
	stop()
	worker.Wait()

	place := filepath.Join(o.dir, "new.db")
	for _, how := range []string{"--dry-run", "--json"} {
		o.run(0, "state", "import-kcl", leases, "--wait", "1ms", "--state", place, "--stream", recs[0].Table, how)
	}
	if got := o.stdout.String(); !strings.Contains(got, `"leases": 1`) || !strings.Contains(got, recs[0].StreamARN) {
		t.Error(got)
	}
	if got := o.run(0, "state", "show", recs[0].Table, "--state", place, "--json"); !strings.Contains(got, `"position": "`+string(recs[0].Sequence)+`"`) {
		t.Error(got)
	}
	refused(1, "the target already has state", "--stream", recs[0].Table)

	// Leases of several streams name theirs.
	for _, rec := range []sluice.Record{recs[0], other[0]} {
		parts := strings.Split(rec.StreamARN, ":") // arn:aws:dynamodb:REGION:ACCOUNT:table/…
		key := fmt.Sprintf("%[1]s:%[2]s$%[1]s$%[3]s$%[4]s:1:%[5]s", parts[4], parts[3], rec.Table, strings.ReplaceAll(rec.StreamARN[strings.Index(rec.StreamARN, "/stream/")+len("/stream/"):], ":", "_"), rec.ShardID)
		if _, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &leases, Item: map[string]types.AttributeValue{
			"leaseKey": &types.AttributeValueMemberS{Value: key}, "checkpoint": &types.AttributeValueMemberS{Value: string(rec.Sequence)},
			"leaseCounter": &types.AttributeValueMemberN{Value: "1"},
		}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &leases, Key: map[string]types.AttributeValue{"leaseKey": &types.AttributeValueMemberS{Value: recs[0].ShardID}}}); err != nil {
		t.Fatal(err)
	}
	place = filepath.Join(o.dir, "two.db")
	o.run(0, "state", "import-kcl", leases, "--wait", "1ms", "--state", place)
	for _, rec := range []sluice.Record{recs[0], other[0]} {
		if got := o.run(0, "state", "show", rec.Table, "--state", place, "--json"); !strings.Contains(got, `"position": "`+string(rec.Sequence)+`"`) {
			t.Error(got)
		}
	}
}
