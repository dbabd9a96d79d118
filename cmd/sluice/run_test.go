package main

import (
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/accounts"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/daemon"
	"github.com/sluicehq/sluice/streamtest"
)

const everything = `
name: shop
source: {tables: [orders], queues: [jobs], start: LATEST, backfill: true, backfillUnits: 7}
aws: {region: eu-west-1, profile: p, endpoints: {dynamodb: "http://127.0.0.1:8000"}}
routes: [{name: x, on: ["a#*", "a#SNAPSHOT"], log: {}}]
deadLetter: {park: item, maxAge: 2h}
tracing: {parent: tp}
limits: {concurrency: 1, window: 2, windowBytes: 3, heldBytes: 5, maxAhead: 4, order: shard, stuckAfter: 5s}
daemon: {state: s.db, listen: "127.0.0.1:1", tokenFile: t, allowHosts: h, pprof: true, requireSinks: true, grace: 6s, logFormat: json, logLevel: warn}
`

// Every daemon field of the file reaches the daemon. A flag wins over its field.
func TestFileReachesDaemon(t *testing.T) {
	cfg, err := config.Parse("f", "", []byte(everything), nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Source.AWS = &config.Account{Region: "us-west-2"} // for Options.Source
	for _, section := range []any{cfg.Source, cfg.DeadLetter, cfg.Limits, cfg.Tracing, cfg.Daemon} {
		v := reflect.ValueOf(section)
		for i := range v.NumField() {
			name := v.Type().Field(i).Name
			if full := v.Type().Name() + "." + name; v.Field(i).IsZero() && full != "DeadLetter.Queue" && full != "DeadLetter.KeyFile" { // which are a function's
				t.Errorf("%s is not in the file of this test", full)
			}
		}
	}
	top, source := accounts.Access{Field: "aws", Region: "eu-west-1", Profile: "p"}, accounts.Access{Field: "source.aws", Region: "us-west-2"}
	want := daemon.Options{
		Application: "shop", Tables: []string{"orders"}, Queues: []string{"jobs"}, Start: "LATEST", Backfill: true, BackfillUnits: 7,
		State: "s.db", Listen: "127.0.0.1:1", DeadLetter: "item", Grace: 6 * time.Second, LogFormat: "json", LogLevel: "warn", Pprof: true, RequireSinks: true, TokenFile: "t", AllowHosts: []string{"h"},
		Region: "eu-west-1", RegionName: "aws.region of the configuration",
		AWS: top, Source: source, Accounts: []accounts.Access{top, source},
		TraceParent: "tp",
		Limits:      flow.Options{Concurrency: 1, Window: 2, WindowBytes: 3, HeldBytes: 5, MaxAhead: 4, Order: flow.ByShard, StuckAfter: 5 * time.Second, MaxAge: 2 * time.Hour},
	}
	var o daemon.Options
	fromFile(func(string) bool { return false }, &o, cfg)
	c := &cli{lookup: func(string) (string, bool) { return "", false }}
	if err := c.reach(&o, cfg); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(o, want) {
		t.Errorf("%+v\nwant %+v", o, want)
	}
	var flagged daemon.Options
	fromFile(func(string) bool { return true }, &flagged, cfg)
	if want := (daemon.Options{Limits: want.Limits, TraceParent: want.TraceParent}); !reflect.DeepEqual(flagged, want) {
		t.Errorf("%+v\nwant %+v", flagged, want)
	}
}

// With a configuration file, the error names the missing field, not the flag.
func TestStartIsMissingInFile(t *testing.T) {
	svc := streamtest.NewService(t)
	svc.CreateTable("orders", streamtest.TableOptions{PartitionKey: "id"})
	for name, value := range map[string]string{"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"} {
		t.Setenv(name, value)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "shop.yaml")
	text := "source: {tables: [orders]}\nroutes: [{name: x, on: '*#*', log: {}}]\ndaemon: {listen: 'off', state: '" + filepath.Join(dir, "state.db") + "'}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	env := func(name string) string {
		return map[string]string{"SLUICE_CONFIG": file, "SLUICE_ENDPOINT_DYNAMODB": svc.URL()}[name]
	}
	var stderr strings.Builder
	if exit := execute(t.Context(), []string{"run"}, env, io.Discard, &stderr); exit != exitFailed {
		t.Errorf("exit %d", exit)
	}
	for _, want := range []string{"\n  source.start of " + file + ": TRIM_HORIZON ", "\n  source.start of " + file + ": LATEST "} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, stderr.String())
		}
	}
}

func TestWatchIsTrueOrFalse(t *testing.T) {
	file := filepath.Join(t.TempDir(), "shop.yaml")
	if err := os.WriteFile(file, []byte("source: {tables: [orders], start: LATEST}\nroutes: [{name: x, on: '*#*', log: {}}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := func(name string) string {
		return map[string]string{"SLUICE_CONFIG": file, "SLUICE_WATCH": "maybe", "AWS_REGION": "us-east-1"}[name]
	}
	var stderr strings.Builder
	if exit := execute(t.Context(), []string{"run"}, env, io.Discard, &stderr); exit != 2 || !strings.Contains(stderr.String(), `SLUICE_WATCH="maybe": want true or false`) {
		t.Errorf("exit %d: %s", exit, stderr.String())
	}
}
