//go:build integration

package main

import (
	"context"
	"errors"
	"strings"
	"testing"

	awsdynamodb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/examples/estuve"
	"github.com/sluicehq/sluice/examples/internal/kit"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/sinks/dynamodb"
)

// world is tables of the test's own, made by the program.
type world struct {
	t      *testing.T
	prefix string
	env    map[string]string
	tables estuve.Tables
	store  *dynamodb.Store
}

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Setenv("AWS_REGION", "us-east-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "local")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "local")
	cfg := localtest.DynamoDB(t)
	prefix := localtest.Name("estuve") + "-"
	w := &world{t: t, prefix: prefix, tables: estuve.Named(prefix), env: map[string]string{
		"ESTUVE_PREFIX": prefix, "SLUICE_ENDPOINT_DYNAMODB": *cfg.BaseEndpoint,
	}}
	if out, err := w.command("create"); err != nil || !strings.Contains(out, "points and markers are there") {
		t.Fatal(out, err)
	}
	t.Cleanup(func() {
		db := awsdynamodb.NewFromConfig(cfg)
		for name := range w.tables.Keys() {
			if _, err := db.DeleteTable(context.Background(), &awsdynamodb.DeleteTableInput{TableName: &name}); err != nil {
				t.Error(err)
			}
		}
	})
	var err error
	if w.store, err = estuve.OpenStore(cfg, w.getenv, w.tables, nil); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) getenv(name string) string { return w.env[name] }

// command runs one, with standard input after "<".
func (w *world) command(args ...string) (string, error) {
	w.t.Helper()
	in := ""
	if n := len(args); n > 1 && strings.HasPrefix(args[n-1], "<") {
		in, args = args[n-1][1:], args[:n-1]
	}
	var out strings.Builder
	err := program.Execute(w.t.Context(), args[0], kit.Call{Args: args[1:], Env: w.getenv, In: strings.NewReader(in), Out: &out})
	return strings.ReplaceAll(out.String(), w.prefix, ""), err
}

func (w *world) put(fixtures ...estuve.Fixture) {
	w.t.Helper()
	for _, f := range fixtures {
		if err := w.store.Put(w.t.Context(), f.Table, f.Item); err != nil {
			w.t.Fatal(err)
		}
	}
}

func TestCommands(t *testing.T) {
	w := newWorld(t)
	w.put(estuve.Fixtures(w.tables)...)
	drift := dynamo.Update(w.tables.Maps, item.Of(item.String("user_id", "u-1"), item.String("map_id", "m-2")), "SET #n = :n").Name("#n", "num_points").Value(":n", 9)
	if err := w.store.Write(t.Context(), drift); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args string
		want string
	}{
		{"create", "tables users, maps, points and markers are there\n"},
		{"plan map u-1 m-1", `points {"map_id":{"S":"m-1"},"point_id":{"S":"p-1"}}
points {"map_id":{"S":"m-1"},"point_id":{"S":"p-2"}}
points {"map_id":{"S":"m-1"},"point_id":{"S":"p-3"}}
3 rows are children of maps {"user_id":{"S":"u-1"},"map_id":{"S":"m-1"}}, which still exists: until it is deleted, none goes
`},
		{"plan user u-1", `maps {"user_id":{"S":"u-1"},"map_id":{"S":"m-1"}}
maps {"user_id":{"S":"u-1"},"map_id":{"S":"m-2"}}
2 rows are children of users {"user_id":{"S":"u-1"}}, which still exists: until it is deleted, none goes
points {"map_id":{"S":"m-1"},"point_id":{"S":"p-1"}}
points {"map_id":{"S":"m-1"},"point_id":{"S":"p-2"}}
points {"map_id":{"S":"m-1"},"point_id":{"S":"p-3"}}
3 rows are children of maps {"user_id":{"S":"u-1"},"map_id":{"S":"m-1"}}, which still exists: until it is deleted, none goes
points {"map_id":{"S":"m-2"},"point_id":{"S":"p-4"}}
points {"map_id":{"S":"m-2"},"point_id":{"S":"p-5"}}
2 rows are children of maps {"user_id":{"S":"u-1"},"map_id":{"S":"m-2"}}, which still exists: until it is deleted, none goes
`},
		{"recount --dry-run --settle 1ms u-1", `maps {"user_id":{"S":"u-1"},"map_id":{"S":"m-2"}}: num_points would be set from 9 to 2
4 counters: 3 right, 0 were late, 1 wrong, 0 busy, 0 without an item
`},
		{"recount --settle 1ms <u-1\n\nnobody\n", `maps {"user_id":{"S":"u-1"},"map_id":{"S":"m-2"}}: num_points set from 9 to 2
6 counters: 3 right, 0 were late, 1 wrong, 0 busy, 2 without an item
`},
		{"recount --settle 1ms u-1", "4 counters: 4 right, 0 were late, 0 wrong, 0 busy, 0 without an item\n"},
	} {
		args := strings.SplitN(tt.args, " <", 2)
		words := strings.Fields(args[0])
		if len(args) > 1 {
			words = append(words, "<"+args[1])
		}
		if got, err := w.command(words...); err != nil || got != tt.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", tt.args, err, got, tt.want)
		}
	}
}

func TestCommandsRefuse(t *testing.T) {
	w := &world{t: t, prefix: "none"}
	for args, want := range map[string]string{
		"create now":               "takes no arguments",
		"plan":                     "want plan user USER, or plan map USER MAP",
		"plan point p-1":           "want plan user USER, or plan map USER MAP",
		"plan map u-1":             "want plan user USER, or plan map USER MAP",
		"recount --hard u-1":       "unknown flag: --hard: want recount",
		"recount --settle=0 u-1":   "--settle is 0s, want more than 0",
		"recount --max-deletes=-1": "--max-deletes is -1, want 0 or more",
		"foo":                      `unknown command "foo"; commands are create, plan, recount, worker. Without one, flags alone run the daemon`,
	} {
		var usage *kit.UsageError
		if _, err := w.command(strings.Fields(args)...); !errors.As(err, &usage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
	if _, err := w.command("plan", "user", ""); err == nil || !strings.Contains(err.Error(), "want plan user USER") {
		t.Error(err)
	}
}

func TestHelp(t *testing.T) {
	w := &world{t: t, prefix: "none"}
	for name, c := range program.Commands {
		if got, err := w.command(name, "--help"); err != nil || !strings.HasPrefix(got, "estuve "+c.Usage+": "+c.Does+"\n") || !strings.Contains(program.Help(), "  "+c.Usage+"\n") {
			t.Errorf("%s: %q, %v, help %s", name, got, err, program.Help())
		}
	}
}
