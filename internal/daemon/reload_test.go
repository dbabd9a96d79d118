package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/pflag"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/holders"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/internal/page"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/streamtest"
)

// reloadFileEnv names the file of the child "reloading". It has a word and its values in
// each line: "route NAME ok|fail|stuck", "application NAME", "table NAME", "queue NAME",
// "error TEXT".
const reloadFileEnv = "SLUICE_RUN_TEST_FILE"

func init() {
	if file := os.Getenv(reloadFileEnv); file != "" {
		watchEvery, watchRetry = 10*time.Millisecond, 50*time.Millisecond
		children["reloading"] = fileApp(file)
	}
}

// fileApp is an App whose routes are in a file.
func fileApp(file string) App {
	digest := func() (string, error) {
		text, err := os.ReadFile(file)
		return string(text), err
	}
	loaded, _ := digest()
	values := func(word string) (all [][]string) {
		for line := range strings.Lines(loaded) {
			if f := strings.Fields(line); len(f) > 0 && f[0] == word {
				all = append(all, f[1:])
			}
		}
		return all
	}
	return App{
		Name: "reloading",
		Routes: func(context.Context, Setup) (sluice.Matcher, error) {
			for _, text := range values("error") {
				return nil, errors.New(strings.Join(text, " "))
			}
			r := router.New()
			for _, v := range values("route") {
				name, does := v[0], v[1]
				r.Handle("*#*", func(_ context.Context, rec *sluice.Record) error {
					id, _ := rec.Keys.Lookup("id")
					switch does {
					case "fail":
						return errors.New("the sink is down")
					case "stuck":
						fmt.Println("stuck", id.Str())
						select {}
					}
					_, err := fmt.Println("handled", name, id.Str())
					return err
				}, router.Name(name), router.Backoff(time.Millisecond, 10*time.Millisecond))
			}
			return r, nil
		},
		Reloading: &Reloading{
			Watch: os.Getenv("SLUICE_WATCH") != "", Loaded: loaded, Digest: digest,
			Load: func(context.Context) (App, Options, func(string) string, error) {
				var o Options
				fs := pflag.NewFlagSet("", pflag.ContinueOnError)
				o.AddFlags(fs)
				if err := fs.Parse(os.Args[1:]); err != nil {
					return App{}, o, nil, err
				}
				next, err := os.ReadFile(file)
				for line := range strings.Lines(string(next)) {
					switch f := strings.Fields(line); {
					case len(f) < 2:
					case f[0] == "application":
						o.Application = f[1]
					case f[0] == "table":
						o.Tables = append(o.Tables, f[1])
					case f[0] == "queue":
						o.Queues = append(o.Queues, f[1])
					}
				}
				return fileApp(file), o, os.Getenv, errors.Join(err, o.FromEnv(fs, os.Getenv))
			},
		},
	}
}

// reloadable is a daemon whose routes are in a file.
type reloadable struct {
	*child
	file    string
	service *streamtest.Service
	table   *streamtest.Table
}

func startReloadable(t *testing.T, text, grace string, env ...string) *reloadable {
	t.Helper()
	noAWS(t)
	svc := streamtest.NewService(t)
	r := &reloadable{file: filepath.Join(t.TempDir(), "routes"), service: svc, table: svc.CreateTable("orders", streamtest.TableOptions{PartitionKey: "id"})}
	r.write(t, text)
	r.child = startChild(t, "reloading", append(env, reloadFileEnv+"="+r.file), "--table", "orders", "--start", "TRIM_HORIZON",
		"--listen", "127.0.0.1:0", "--state", filepath.Join(t.TempDir(), "state.db"), "--endpoint-dynamodb", svc.URL(), "--grace", grace)
	r.until("msg=starting", 1)
	return r
}

func (r *reloadable) write(t *testing.T, text string) {
	t.Helper()
	next := r.file + ".next"
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, r.file); err != nil {
		t.Fatal(err)
	}
}

// reload writes a file and reloads it.
func (r *reloadable) reload(text string) (code int, body string) {
	r.t.Helper()
	r.write(r.t, text)
	return r.ask("POST", "/reload")
}

func (r *reloadable) status() (st page.Status) {
	r.t.Helper()
	code, body := r.ask("GET", "/api/status")
	if err := json.Unmarshal([]byte(body), &st); err != nil || code != 200 {
		r.t.Fatalf("status %d: %s", code, body)
	}
	return st
}

func (r *reloadable) put(id string) { r.table.Put(map[string]any{"id": id}) }

// A new file takes effect, in the same process; a bad one changes nothing, and says why.
func TestReload(t *testing.T) {
	r := startReloadable(t, "route a ok\n", "2m")
	r.put("one")
	r.until("handled a one", 1)
	before := r.status()
	if code, body := r.reload("route b ok\n"); code != 200 || !strings.Contains(body, `"reloaded"`) {
		t.Fatalf("%d %s", code, body)
	}
	r.put("two")
	r.until("handled b two", 1)
	after := r.status()
	if after.Config == before.Config || after.Worker != before.Worker || !after.Started.Equal(before.Started) || !after.Ready {
		t.Errorf("after the reload: %+v, before: %+v", after, before)
	}
	for i, bad := range []struct{ text, want string }{
		{"error line 1: what\n", "line 1: what"},
		{"", "there is no route"},
		{"route b ok\napplication other\n", "cannot change while the daemon runs: name: restart it"},
		{"route b ok\ntable none\n", `table "none"`},
	} {
		code, body := r.reload(bad.text)
		st := r.status()
		if code != 422 || !strings.Contains(body, bad.want) {
			t.Errorf("%q: %d %s, want %q", bad.text, code, body, bad.want)
		}
		if st.Config != after.Config || st.Reload == nil || st.Reload.Outcome != page.Failed || !strings.Contains(st.Reload.Error, bad.want) {
			t.Errorf("%q: the status is %+v", bad.text, st.Reload)
		}
		r.until("the configuration cannot be reloaded", i+1)
		if _, series := r.ask("GET", "/metrics"); !strings.Contains(series, "sluice_config_last_reload_successful 0") {
			t.Errorf("%q: the series do not tell", bad.text)
		}
	}
	if _, page := r.ask("GET", "/"); !strings.Contains(page, "the old configuration goes on") {
		t.Errorf("the page shows %s", page)
	}
	if code, body := r.reload("route b ok\n"); code != 200 || !strings.Contains(body, `"unchanged"`) {
		t.Errorf("without a change: %d %s", code, body)
	}
	r.put("three")
	r.until("handled b three", 1)
	localtest.Await(t, "the series", func() (missing string) {
		_, series := r.ask("GET", "/metrics")
		for _, want := range []string{
			"sluice_config_last_reload_successful 1", `sluice_config_reloads_total{outcome="failed"} 4`,
			`sluice_config_reloads_total{outcome="reloaded"} 1`, `sluice_shards{table="orders"} 1`,
			`sluice_records_total{outcome="done",route="b"} 2`,
		} {
			if !strings.Contains(series, want) {
				missing += want + "\n"
			}
		}
		return missing
	})
	if code, _ := r.askWith("wrong", "POST", "/reload"); code != 401 {
		t.Errorf("without the token: %d", code)
	}
	r.signal(syscall.SIGTERM)
	if code := r.exit(); code != 0 || strings.Count(r.output(), "\nhandled ") != 3 {
		t.Errorf("exit %d:\n%s", code, r.output())
	}
}

// Files that change at random, well or badly, under load: each record is handled once,
// by a route that was in a good file.
func TestReloadsUnderLoad(t *testing.T) {
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	r := startReloadable(t, "route r0 ok\n", "2m")
	var written []string
	for i := range 40 {
		for range rng.IntN(200) {
			id := fmt.Sprintf("i%05d", len(written))
			r.put(id)
			written = append(written, id)
		}
		text, want := fmt.Sprintf("route r%d ok\n", rng.IntN(3)), 200
		switch rng.IntN(4) {
		case 0:
			text, want = text+fmt.Sprintf("error number %d\n", i), 422
		case 1:
			text += fmt.Sprintf("# %d\n", i)
		}
		if rng.IntN(4) == 0 {
			r.write(t, text)
			r.signal(syscall.SIGHUP)
			continue
		}
		if code, body := r.reload(text); code != want {
			t.Errorf("%q: %d %s", text, code, body)
		}
	}
	for _, id := range written {
		r.until(" "+id, 1)
	}
	r.signal(syscall.SIGTERM)
	if code := r.exit(); code != 0 {
		t.Errorf("exit %d:\n%s", code, r.output())
	}
	times := map[string]int{}
	for line := range strings.Lines(r.output()) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "handled" {
			times[f[2]]++
		}
	}
	for _, id := range written {
		if times[id] != 1 {
			t.Errorf("%s was handled %d times", id, times[id])
		}
	}
}

// What fails in an outage keeps its attempts and its age, under a new file, too.
func TestReloadInAnOutage(t *testing.T) {
	r := startReloadable(t, "route work fail\n", "2m")
	for i := range 8 {
		r.put(fmt.Sprint("i", i))
	}
	held := func() []holders.Item {
		var answer page.HeldItems
		if _, body := r.ask("GET", "/api/held"); json.Unmarshal([]byte(body), &answer) != nil {
			t.Fatal(body)
		}
		return answer.Held
	}
	var before []holders.Item
	localtest.Await(t, "all items fail", func() string {
		if before = held(); len(before) == 8 && before[0].Attempts > 3 {
			return ""
		}
		return fmt.Sprint(before)
	})
	for i := range 3 {
		if code, body := r.reload(fmt.Sprintf("route work fail\nroute other%d ok\n", i)); code != 200 {
			t.Fatalf("%d %s", code, body)
		}
	}
	var after []holders.Item
	localtest.Await(t, "they are held again", func() string {
		if after = held(); len(after) == 8 {
			return ""
		}
		return fmt.Sprint(after)
	})
	for _, old := range before {
		for _, now := range after {
			if now.Key == old.Key && (now.Attempts < old.Attempts || now.AgeSeconds < old.AgeSeconds) {
				t.Errorf("held for %v s after %d attempts, and before the reloads for %v s after %d", now.AgeSeconds, now.Attempts, old.AgeSeconds, old.Attempts)
			}
		}
	}
	if code, body := r.reload("route work ok\n"); code != 200 {
		t.Fatalf("%d %s", code, body)
	}
	r.until("handled work", 8)
}

// A pause lasts.
func TestReloadKeepsPauses(t *testing.T) {
	r := startReloadable(t, "route a ok\nroute b ok\n", "2m")
	if code, body := r.ask("POST", "/routes/pause?route=a&for=1h"); code != 200 {
		t.Fatalf("%d %s", code, body)
	}
	r.put("one")
	r.until("handled b one", 1)
	if code, body := r.reload("route a ok\nroute c ok\n"); code != 200 {
		t.Fatalf("%d %s", code, body)
	}
	r.until("handled c one", 1)
	if strings.Contains(r.output(), "handled a one") {
		t.Error("a paused route is called")
	}
	if code, body := r.ask("POST", "/routes/resume?route=a"); code != 200 {
		t.Fatalf("%d %s", code, body)
	}
	r.until("handled a one", 1)
}

// A handler that does not return cannot be left behind: the process ends.
func TestReloadBesideAStuckHandler(t *testing.T) {
	r := startReloadable(t, "route a stuck\n", "1s")
	r.put("one")
	r.until("stuck one", 1)
	r.write(t, "route a ok\n")
	r.signal(syscall.SIGHUP)
	// A slow disk may not even store the position before the grace is over.
	code, out := r.exit(), r.output()
	if code != 1 || !strings.Contains(out, `a handler of route "a" has not returned`) && !strings.Contains(out, "the old routes have not ended well") {
		t.Errorf("exit %d:\n%s", code, out)
	}
}

// Each setting that outlasts a reload is named.
func TestFixedSettings(t *testing.T) {
	env := func(url string) func(string) string {
		return func(string) string { return url }
	}
	file := Options{Application: "a", State: "s.db", Listen: "l", LogFormat: "text", LogLevel: "info", Region: "r"}
	table := file
	table.State = "dynamodb:s"
	for _, tt := range []struct {
		of     Options
		change func(*Options)
		url    string
		want   string
	}{
		{file, func(*Options) {}, "", ""},
		{file, func(o *Options) { o.Grace, o.Tables, o.Pprof, o.Region = 1, []string{"t"}, true, "other" }, "http://other", ""},
		{file, func(o *Options) { o.Application, o.State = "b", "other.db" }, "", "name daemon.state"},
		{file, func(o *Options) { o.Listen, o.TokenFile = "off", "f" }, "", "daemon.listen daemon.tokenFile"},
		{file, func(o *Options) { o.AllowHosts, o.LogFormat, o.LogLevel = []string{"h"}, "json", "warn" }, "", "daemon.allowHosts daemon.logFormat daemon.logLevel"},
		{table, func(o *Options) { o.Region = "other" }, "", "aws"},
		{table, func(*Options) {}, "http://other", "aws"},
	} {
		next := tt.of
		tt.change(&next)
		got := (&generation{o: tt.of, env: env("")}).fixed(&generation{o: next, env: env(tt.url)})
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%+v after %+v: %q, want %q", next, tt.of, got, tt.want)
		}
	}
}

// A file with a queue that does not exist is refused before the old routes end.
func TestReloadOpensQueuesFirst(t *testing.T) {
	var r *reloadable
	handled := make(chan struct{})
	var asked sync.Once
	sqs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Do(func() {
			r.put("one")
			r.until("handled a one", 1) // by the routes that go on
			close(handled)
		})
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.Header().Set("X-Amzn-Query-Error", "AWS.SimpleQueueService.NonExistentQueue;Sender")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"__type":"com.amazonaws.sqs#QueueDoesNotExist","message":"there is none"}`)
	}))
	defer sqs.Close()
	r = startReloadable(t, "route a ok\n", "5s", "SLUICE_ENDPOINT_SQS="+sqs.URL)
	if code, body := r.reload("route b ok\nqueue none\n"); code != 422 || !strings.Contains(body, "none") {
		t.Errorf("%d %s", code, body)
	}
	<-handled
	r.put("two")
	r.until("handled a two", 1)
	if strings.Contains(r.output(), "handled b") {
		t.Errorf("the refused file's routes have handled a record:\n%s", r.output())
	}
}

// A process that ends in a reload does not wait for another reload.
func TestReloadBesideOneThatEndsTheProcess(t *testing.T) {
	r := startReloadable(t, "route a stuck\n", "1s", "SLUICE_WATCH=1")
	r.put("one")
	r.until("stuck one", 1)
	r.write(t, "route a ok\n")
	r.signal(syscall.SIGHUP)
	if code := r.exit(); code != 1 {
		t.Errorf("exit code %d:\n%s", code, r.output())
	}
}

// A handover waits for handlers that take longer than the grace, and for nothing for ever.
func TestReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := router.New()
		m.Handle("*#*", func(_ context.Context, rec *sluice.Record) error {
			time.Sleep(time.Minute)
			return nil
		})
		calls, watched := watchCalls(m)
		g := &generation{src: &sources{calls: calls}}
		p := &process{}
		call := func() {
			rec := recordtest.New(recordtest.Spec{Event: sluice.Insert, Keys: `{"id":{"S":"1"}}`, New: `{"id":{"S":"1"}}`, Sequence: recordtest.Sequence(1), Shard: "s"})
			go func() { _ = watched.Routes()[0].Handler(t.Context(), &rec) }()
			synctest.Wait()
		}
		call()
		begun := time.Now()
		if err := p.returned(t.Context(), g); err != nil || time.Since(begun) < time.Minute {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		call()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := p.returned(ctx, g); !errors.Is(err, errStopping) {
			t.Errorf("in a stop: %v", err)
		}
		time.Sleep(time.Minute)
		for range 3 {
			call()
			time.Sleep(50 * time.Second)
			call()
		}
		defer func(was time.Duration) { returnWithin = was }(returnWithin)
		returnWithin = 5 * time.Second
		if err := p.returned(t.Context(), g); err == nil || !strings.Contains(err.Error(), "has not returned within 5s") {
			t.Errorf("of a handler that hangs: %v", err)
		}
		time.Sleep(2 * time.Minute)
	})
}
