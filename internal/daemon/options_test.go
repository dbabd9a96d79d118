package daemon

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/state/boltstate"
)

func anyRoutes(context.Context, Setup) (sluice.Matcher, error) {
	r := router.New()
	r.Handle("*#*", func(context.Context, *sluice.Record) error { return nil })
	return r, nil
}

// noAWS has the SDK look for nothing outside the test.
func noAWS(t *testing.T) {
	for name, value := range map[string]string{
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull,
		"AWS_PROFILE": "", "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
	} {
		t.Setenv(name, value)
	}
}

func environment(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

func expectExit(t *testing.T, a App, args []string, env map[string]string, code int, want ...string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	got := Main(t.Context(), a, args, environment(env), &stdout, &stderr)
	if got != code {
		t.Errorf("exit code %d, want %d", got, code)
	}
	for _, w := range want {
		if !strings.Contains(stderr.String(), w) {
			t.Errorf("stderr does not say %q:\n%s", w, stderr.String())
		}
	}
	if stdout.Len() > 0 {
		t.Errorf("stdout: %s", stdout.String())
	}
}

func TestUsageErrors(t *testing.T) {
	noAWS(t)
	app := App{Name: "shop", Routes: anyRoutes}
	table := []string{"--table", "orders"}
	for _, tt := range []struct {
		name string
		args []string
		env  map[string]string
		want []string
	}{
		{"no table", nil, nil, []string{"--table (SLUICE_TABLES)", "no table is named", "--queue jobs"}},
		{"a backfill of no table", []string{"--queue", "jobs", "--backfill"}, nil, []string{"--backfill (SLUICE_BACKFILL)", "no table is named"}},
		{"negative units", append(table, "--backfill-units=-1"), nil, []string{"--backfill-units (SLUICE_BACKFILL_UNITS)", "-1 is not more than 0"}},
		{"empty name", []string{"--table", "orders,,searches"}, nil, []string{"a name is empty"}},
		{"a table twice", []string{"--table", "orders,searches,orders"}, nil, []string{"--table (SLUICE_TABLES)", `"orders" is named twice`}},
		{"empty queue", []string{"--queue", "jobs,"}, nil, []string{"--queue (SLUICE_QUEUES)", "a name is empty"}},
		{"a queue twice", nil, map[string]string{"SLUICE_QUEUES": "jobs, jobs"}, []string{"--queue (SLUICE_QUEUES)", `"jobs" is named twice`}},
		{"table's ARN", []string{"--table", "arn:aws:dynamodb:us-east-1:1:table/orders"}, nil, []string{"--table (SLUICE_TABLES)", "is not the ARN of a stream", "table/TABLE/stream/LABEL"}},
		{"unknown flag", []string{"--tabel", "orders"}, nil, []string{"unknown flag: --tabel"}},
		{"argument", []string{"orders"}, nil, []string{`unexpected argument "orders"`, "--table"}},
		{"start", append(table, "--start", "latest"), nil, []string{"--start (SLUICE_START)", `"latest" is not one of TRIM_HORIZON, LATEST`}},
		{"start by environment", table, map[string]string{"SLUICE_START": "NOW"}, []string{"--start (SLUICE_START)", `"NOW"`}},
		{"state", append(table, "--state", ""), nil, []string{"--state (SLUICE_STATE)", "empty"}},
		{"listen", append(table, "--listen", "9464"), nil, []string{"--listen (SLUICE_LISTEN)", `"9464" is not host:port`}},
		{"misspelt scheme", append(table, "--state", "DynamoDB:state"), nil, []string{"--state", "is not dynamodb:TABLE: correct it", "./DynamoDB:state"}},
		{"table without a name", append(table, "--state", "dynamodb:"), nil, []string{"--state", "is not the name of a table"}},
		{"items held by a table", append(table, "--state", "dynamodb:state", "--dead-letter", "item"), nil, []string{"--dead-letter", "item needs a state file", "Use record"}},
		{"dead letter", append(table, "--dead-letter", "none"), nil, []string{"--dead-letter", `"none" is not one of record, item`}},
		{"grace", append(table, "--grace", "soon"), nil, []string{"--grace", "soon"}},
		{"short grace", append(table, "--grace", "10ms"), nil, []string{"--grace (SLUICE_GRACE)", "10ms is too short"}},
		{"grace by environment", table, map[string]string{"SLUICE_GRACE": "25"}, []string{`SLUICE_GRACE="25"`, "missing unit"}},
		{"endpoint", append(table, "--endpoint-dynamodb", "localhost:8000"), nil, []string{"--endpoint-dynamodb", `"localhost:8000" is not a URL`}},
		{"plain http to AWS", append(table, "--endpoint-dynamodb", "http://dynamodb.eu-west-1.amazonaws.com"), nil, []string{"--endpoint-dynamodb (SLUICE_ENDPOINT_DYNAMODB): it is plain http to AWS"}},
		{"plain http to AWS by a variable", table, map[string]string{"AWS_ENDPOINT_URL_SQS": "http://sqs.eu-west-1.amazonaws.com"}, []string{"AWS_ENDPOINT_URL_SQS: it is plain http to AWS"}},
		{"endpoint of a queue", table, map[string]string{"SLUICE_ENDPOINT_SQS": "localhost"}, []string{"SLUICE_ENDPOINT_SQS", "is not a URL"}},
		{"log format", append(table, "--log-format", "xml"), nil, []string{`"xml" is not one of text, json`}},
		{"log level", append(table, "--log-level", "loud"), nil, []string{`"loud" is not one of debug`}},
		{"pprof and no address", append(table, "--pprof", "--listen", "off"), nil, []string{"--pprof (SLUICE_PPROF)", "--listen (SLUICE_LISTEN)"}},
		{"pprof by environment", table, map[string]string{"SLUICE_PPROF": "maybe"}, []string{`SLUICE_PPROF="maybe"`}},
		{"several", append(table, "--log-level", "loud", "--start", "x"), nil, []string{"--log-level", "--start"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			expectExit(t, app, tt.args, tt.env, 2, append(tt.want, "shop: ", `run "shop --help"`)...)
		})
	}
}

// A subcommand is named in the hint, too.
func TestUsageOfASubcommand(t *testing.T) {
	expectExit(t, App{Name: "shop", Routes: anyRoutes}, []string{"dlq", "redrive", "--nonsense"}, nil, 2, `run "shop dlq redrive --help"`)
}

func TestHelp(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if got := Main(t.Context(), App{Name: "shop"}, []string{"--help"}, environment(nil), &stdout, &stderr); got != 0 || stderr.Len() > 0 {
		t.Errorf("exit code %d, stderr %q", got, stderr.String())
	}
	for _, want := range []string{"SIGTERM", "exits with 1", "SLUICE_ENDPOINT_SQS"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("help does not tell of %s:\n%s", want, stdout.String())
		}
	}
	for flag, env := range envOf {
		if !strings.Contains(stdout.String(), "--"+flag) || !strings.Contains(stdout.String(), "($"+env+")") {
			t.Errorf("help does not tell of --%s and %s:\n%s", flag, env, stdout.String())
		}
	}
}

func TestFlagsGoBeforeEnvironment(t *testing.T) {
	noAWS(t)
	stop := errors.New("seen enough")
	for _, tt := range []struct {
		name string
		app  App
		args []string
		env  map[string]string
		want string
	}{
		{"application", App{Tables: []string{"a", "b"}}, nil, nil, "a b"},
		{"environment", App{Tables: []string{"a"}}, nil, map[string]string{"SLUICE_TABLES": "c, d"}, "c d"},
		{"stream", App{}, []string{"--table", "arn:aws:dynamodb:us-east-1:1:table/h/stream/2026-01-01T00:00:00.000,h"}, nil, "h"},
		{"flags", App{Tables: []string{"a"}}, []string{"--table", "e", "--table=f,g"}, map[string]string{"SLUICE_TABLES": "c"}, "e f g"},
		{"queues of the application", App{Queues: []string{"q", "r"}}, nil, nil, "queues q r"},
		{"queues", App{Tables: []string{"a"}, Queues: []string{"q"}}, []string{"--queue", "http://h/1/s"}, map[string]string{"SLUICE_QUEUES": "t"}, "a queues http://h/1/s"},
		{"queues by environment", App{Queues: []string{"q"}}, nil, map[string]string{"SLUICE_QUEUES": "t, u"}, "queues t u"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			tt.app.Routes = func(_ context.Context, s Setup) (sluice.Matcher, error) {
				got = strings.Join(s.Tables, " ")
				if len(s.Queues) > 0 {
					got = strings.TrimSpace(got + " queues " + strings.Join(s.Queues, " "))
				}
				return nil, stop
			}
			expectExit(t, tt.app, tt.args, tt.env, 1, "seen enough")
			if got != tt.want {
				t.Errorf("tables %q, want %q", got, tt.want)
			}
		})
	}
}

func TestSetup(t *testing.T) {
	noAWS(t)
	app := App{Tables: []string{"t"}, Routes: func(_ context.Context, s Setup) (sluice.Matcher, error) {
		for service, want := range map[string]string{"dynamodb": "http://flag:1", "sqs": "http://env:2", "other": ""} {
			got := ""
			if e := s.AWS(service).BaseEndpoint; e != nil {
				got = *e
			}
			if got != want {
				t.Errorf("endpoint of %s is %q, want %q", service, got, want)
			}
		}
		if s.Lambda || s.Logger == nil || s.Metrics == nil || s.Env("ANY") != "thing" {
			t.Errorf("setup: %+v", s)
		}
		return router.New(), nil
	}}
	env := map[string]string{"SLUICE_ENDPOINT_SQS": "http://env:2", "SLUICE_ENDPOINT_DYNAMODB": "http://env:1", "ANY": "thing"}
	expectExit(t, app, []string{"--endpoint-dynamodb", "http://flag:1"}, env, 1, "there is no route")
}

func TestStartFailures(t *testing.T) {
	noAWS(t)
	dir := t.TempDir()
	state := filepath.Join(dir, "state.db")
	app := App{Name: "shop", Tables: []string{"orders"}, Routes: anyRoutes}
	args := func(more ...string) []string { return append([]string{"--state", state, "--listen", "off"}, more...) }

	t.Run("no routes function", func(t *testing.T) {
		expectExit(t, App{Tables: []string{"t"}}, args(), nil, 1, "App.Routes is nil")
	})
	t.Run("no matcher", func(t *testing.T) {
		none := app
		none.Routes = func(context.Context, Setup) (sluice.Matcher, error) { return nil, nil }
		expectExit(t, none, args(), nil, 1, "there is no route")
	})
	t.Run("state file in use", func(t *testing.T) {
		s, err := boltstate.Open(state, boltstate.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		o := testOptions(state)
		o.lockTimeout = 1
		err = Run(t.Context(), app, o, environment(nil), io.Discard)
		if !errors.Is(err, boltstate.ErrLocked) || !strings.Contains(err.Error(), "--state (SLUICE_STATE") || !strings.Contains(err.Error(), "process ") {
			t.Errorf("Daemon: %v", err)
		}
	})
	t.Run("state is a directory", func(t *testing.T) {
		expectExit(t, app, []string{"--state", dir, "--listen", "off"}, nil, 1, "--state (SLUICE_STATE", dir, "name a file in a directory")
	})
	t.Run("address in use", func(t *testing.T) {
		other := httptest.NewServer(http.NotFoundHandler())
		defer other.Close()
		address := other.Listener.Addr().String()
		expectExit(t, app, []string{"--state", state, "--listen", address}, nil, 1, "--listen (SLUICE_LISTEN)", address, "address already in use", `or "off"`)
	})
	t.Run("no credentials", func(t *testing.T) {
		t.Setenv("AWS_ACCESS_KEY_ID", "")
		t.Setenv("AWS_SECRET_ACCESS_KEY", "")
		expectExit(t, app, args(), nil, 1, "no AWS credentials", "AWS_ACCESS_KEY_ID")
	})
	t.Run("no Region", func(t *testing.T) {
		t.Setenv("AWS_REGION", "")
		t.Setenv("AWS_DEFAULT_REGION", "")
		expectExit(t, app, args(), nil, 1, "no AWS Region", "AWS_REGION")
	})
	t.Run("unreachable endpoint", func(t *testing.T) {
		const closed = "http://127.0.0.1:1"
		o := testOptions(state)
		o.Endpoint = closed
		err := Run(t.Context(), app, o, environment(nil), io.Discard)
		if err == nil {
			t.Fatal("Daemon started")
		}
		for _, want := range []string{`table "orders"`, "dynamodb:DescribeTable", "connection refused", closed, "reachable"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v does not say %q", err, want)
			}
		}
	})
	t.Run("unreachable queue", func(t *testing.T) {
		const closed = "http://127.0.0.1:1"
		o := testOptions(state)
		o.Queues = []string{"jobs"} // and no table, nor a start
		worker := App{Name: "worker", Routes: app.Routes}
		err := Run(t.Context(), worker, o, environment(map[string]string{"SLUICE_ENDPOINT_SQS": closed}), io.Discard)
		if err == nil {
			t.Fatal("Daemon started")
		}
		for _, want := range []string{`queue "jobs"`, closed, "sqs:GetQueueUrl", "connection refused", "cannot be reached"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v does not say %q", err, want)
			}
		}
	})
	t.Run("no queue", func(t *testing.T) {
		expectExit(t, app, args("--queue", "ftp://x/y"), nil, 1, `"ftp://x/y" is neither a queue's URL`)
	})
	t.Run("dead letters of a newer program", func(t *testing.T) {
		s, err := boltstate.Open(state, boltstate.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.PutLetter(t.Context(), "shop", "id", []byte(`{"version":7,"id":"id"}`)); err != nil {
			t.Fatal(err)
		}
		s.Close()
		expectExit(t, app, args("--dead-letter", "item"), nil, 1, state, "dead letter id is of version 7")
	})
}

// testOptions are those of the flags' defaults, and quick.
func testOptions(state string) Options {
	return Options{
		State: state, Listen: "off", DeadLetter: "record", Grace: 5e9, LogFormat: "text", LogLevel: "debug",
		startTimeout: 1e8, // one failed call ends it
	}
}
