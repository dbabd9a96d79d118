package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/streamtest"
)

// local leads the command's calls of DynamoDB to a fake.
func local(t *testing.T, url string) func(string) string {
	for name, value := range map[string]string{
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
	} {
		t.Setenv(name, value)
	}
	t.Chdir(t.TempDir()) // where there is no sluice.yaml
	return func(name string) string {
		return map[string]string{"SLUICE_ENDPOINT_DYNAMODB": url}[name]
	}
}

func TestTail(t *testing.T) {
	service := streamtest.NewService(t)
	table := service.CreateTable("orders", streamtest.TableOptions{})
	table.Put(`{"pk":{"S":"1"},"entityType":{"S":"order"},"status":{"S":"new"},"secret":{"S":"hidden"}}`)
	table.Put(`{"pk":{"S":"1"},"entityType":{"S":"order"},"status":{"S":"paid"},"total":{"N":"7"}}`)
	table.Put(`{"pk":{"S":"2"},"entityType":{"S":"line"},"note":{"S":"a\u001b[2Jb"}}`)
	table.Expire(`{"pk":{"S":"1"}}`)
	service.SetLimits(streamtest.Limits{DescribesPerStream: math.Inf(1), ReadsPerShard: math.Inf(1)}) // each command lists the shards
	env := local(t, service.URL())
	show := func(limit int, args ...string) string {
		t.Helper()
		var stdout, stderr bytes.Buffer
		args = append([]string{"tail", "orders", "--from", "TRIM_HORIZON", "--limit", fmt.Sprint(limit)}, args...)
		if code := execute(t.Context(), args, env, &stdout, &stderr); code != 0 || stderr.Len() > 0 {
			t.Fatalf("%v: exit code %d\n%s", args, code, &stderr)
		}
		return regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d  `).ReplaceAllString(stdout.String(), "")
	}
	for _, tt := range []struct {
		name  string
		limit int
		args  []string
		want  string
	}{
		{"all", 4, nil, `INSERT  order  pk=1  entityType status secret
MODIFY  order  pk=1  status total secret
INSERT  line  pk=2  entityType note
REMOVE  order  pk=1  (expired)  entityType status total
`},
		{"limit", 1, nil, "INSERT  order  pk=1  entityType status secret\n"},
		{"type", 1, []string{"--type", "line"}, "INSERT  line  pk=2  entityType note\n"},
		{"event", 2, []string{"--event", "modify,REMOVE"}, "MODIFY  order  pk=1  status total secret\nREMOVE  order  pk=1  (expired)  entityType status total\n"},
		{"where", 1, []string{"--where", `new.total > 5 && old.status == "new"`}, "MODIFY  order  pk=1  status total secret\n"},
		{"other type", 1, []string{"--type-attribute", "status", "--type", "paid"}, "MODIFY  paid  pk=1  status total secret\n"},
		{"values", 1, []string{"--values", "--event", "MODIFY"}, `MODIFY  order  pk=1
          status: new → paid
          total: 7
          secret: hidden → (removed)
`},
		{"control characters", 1, []string{"--values", "--type", "line"}, "INSERT  line  pk=2\n          entityType: line\n          note: a\\u001b[2Jb\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := show(tt.limit, tt.args...); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
	t.Run("json", func(t *testing.T) {
		out := show(4, "--json")
		n := 0
		for rec, err := range readRecords(strings.NewReader(out)) {
			if err != nil || rec.Err() != nil {
				t.Fatal(err, rec.Err())
			}
			if rec.Table != "orders" || rec.StreamARN != table.StreamARN() || rec.Sequence != table.Changes()[n].Sequence {
				t.Errorf("record %d is of table %q, %s, sequence number %s", n, rec.Table, rec.StreamARN, rec.Sequence)
			}
			n++
		}
		if n != 4 || strings.Count(out, "\n") != 4 {
			t.Errorf("%d records in\n%s", n, out)
		}
	})
}

// The output marks a text that looks like a number, and names a route that would fail.
func TestTailTellsTypesAndFailures(t *testing.T) {
	service := streamtest.NewService(t)
	table := service.CreateTable("orders", streamtest.TableOptions{})
	table.Put(`{"pk":{"S":"1"},"entityType":{"S":"order"},"total":{"S":"250"},"note":{"S":"new"}}`)
	table.Put(`{"pk":{"S":"1"},"entityType":{"S":"order"},"total":{"N":"250"},"note":{"S":"new"}}`)
	env := local(t, service.URL())
	if err := os.WriteFile("sluice.yaml", []byte(`
source: {tables: [orders], start: LATEST}
sinks: {jobs: {sqs: {queue: jobs}}}
routes:
  - {name: large, on: "order#*", when: "new.total > 100", send: {to: jobs}}
  - {name: named, on: "order#*", send: {to: jobs, body: '{"name":"{name}"}'}}
  - {name: all, on: "order#*", send: {to: jobs}}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		want []string
	}{
		{nil, []string{
			`INSERT  order  pk=1  entityType total note  → large (would fail: when "new.total > 100", line 1, column 11: `,
			`, named (would fail: `, "), all\n",
			"MODIFY  order  pk=1  total(S→N)  → large, named (would fail: ",
		}},
		{[]string{"--values"}, []string{"          total: \"250\"\n          note: new\n", "          total: \"250\" → 250\n"}},
	} {
		var stdout, stderr bytes.Buffer
		args := append([]string{"tail", "orders", "--from", "TRIM_HORIZON", "--limit", "2"}, tt.args...)
		if code := execute(t.Context(), args, env, &stdout, &stderr); code != 0 || stderr.Len() > 0 {
			t.Fatalf("exit code %d\n%s", code, &stderr)
		}
		for _, want := range tt.want {
			if !strings.Contains(stdout.String(), want) {
				t.Errorf("%v: no %q in\n%s", tt.args, want, &stdout)
			}
		}
	}
}

// A change that a daemon holds is shown by its number.
func TestTailOne(t *testing.T) {
	service := streamtest.NewService(t)
	table := service.CreateTable("orders", streamtest.TableOptions{})
	for _, status := range []string{"new", "paid", "sent"} {
		table.Put(`{"pk":{"S":"1"},"entityType":{"S":"order"},"status":{"S":"` + status + `"}}`)
	}
	env := local(t, service.URL())
	second := string(table.Changes()[1].Sequence)
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--sequence", second, "--values"}, 0, "MODIFY  order  pk=1\n          status: new → paid\n"},
		{[]string{"--sequence", second, "--json"}, 0, `"SequenceNumber":"` + second + `"`},
		{[]string{"--sequence", second + "0"}, 1, "the stream does not hold it any more"},
		{[]string{"--sequence", ""}, 2, `--sequence: "" is no sequence number`},
		{[]string{"--sequence", "x"}, 2, `--sequence: "x" is no sequence number`},
		{[]string{"--sequence", second, "--limit", "1"}, 2, "leave --limit out"},
	} {
		var stdout, stderr bytes.Buffer
		code := execute(t.Context(), append([]string{"tail", "orders"}, tt.args...), env, &stdout, &stderr)
		if out := stdout.String() + stderr.String(); code != tt.code || !strings.Contains(out, tt.want) {
			t.Errorf("%v: exit code %d\n%s", tt.args, code, out)
		}
	}
}

// An image that the stream's view leaves out is not shown as a change.
func TestChanged(t *testing.T) {
	old := item.Of(item.String("pk", "1"), item.String("a", "1"), item.String("b", "1"))
	now := item.Of(item.String("pk", "1"), item.String("b", "2"), item.String("c", "1"))
	for _, tt := range []struct {
		rec  sluice.Record
		want string
	}{
		{streamtest.Modify("t", old, now), "b c a"},
		{streamtest.Insert("t", now), "b c"},
		{streamtest.Remove("t", old), "a b"},
		{streamtest.Modify("t", old, now, streamtest.WithView(item.NewImage)), ""},
		{streamtest.Modify("t", old, now, streamtest.WithView(item.OldImage)), ""},
		{streamtest.Modify("t", old, now, streamtest.WithView(item.KeysOnly)), ""},
		{streamtest.Insert("t", now, streamtest.WithView(item.KeysOnly)), ""},
	} {
		if got := strings.Join(changed(&tt.rec), " "); got != tt.want {
			t.Errorf("%s %s: %q, want %q", tt.rec.EventName, tt.rec.ViewType, got, tt.want)
		}
	}
}

func TestReadRecords(t *testing.T) {
	rec := streamtest.Insert("orders", `{"pk":{"S":"1"}}`)
	one := string(rec.Raw())
	bare := `{"eventID":"1","eventName":"REMOVE","dynamodb":{"Keys":{"pk":{"S":"1"}},"SequenceNumber":"111111111111111111111"}}`
	message := `{"Records":[{"messageId":"m","body":"{\"kind\":\"k\"}","eventSource":"aws:sqs","eventSourceARN":"arn:aws:sqs:us-east-1:1:q","attributes":{},"messageAttributes":{}}]}`
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, []byte(one), "", "  "); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, in string
		want     int
		err      string
	}{
		{"event", `{"Records":[` + one + `,` + one + `]}`, 2, ""},
		{"get records", `{"NextShardIterator":"x","Records":[` + bare + `]}`, 1, ""},
		{"pipes", `[` + one + `]`, 1, ""},
		{"lines", one + "\n\n" + bare + "\n", 2, ""},
		{"pretty", pretty.String(), 1, ""},
		{"events", `{"Records":[` + one + `]}[` + one + `]`, 2, ""},
		{"messages", message, 1, ""},
		{"empty event", `{"Records":[]}`, 0, ""},
		{"empty", " \n", 0, "there is no record"},
		{"byte order mark", "\uFEFF" + one, 0, "the input begins with a byte order mark (the bytes EF BB BF)"},
		{"no JSON", one + "\n{", 1, "no JSON after byte"},
		{"text", `"x"`, 0, "the value that ends at byte 3"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := 0
			var failed error
			for rec, err := range readRecords(strings.NewReader(tt.in)) {
				if err != nil {
					failed = err
					continue
				}
				if rec.Err() != nil {
					t.Error(rec.Err())
				}
				n++
			}
			if n != tt.want || (failed == nil) != (tt.err == "") || failed != nil && !strings.Contains(failed.Error(), tt.err) {
				t.Errorf("%d records, %v; want %d and %q", n, failed, tt.want, tt.err)
			}
		})
	}
}

// The ARN of the stream is put into a record that lacks it, once.
func TestWhole(t *testing.T) {
	page, err := sluice.DecodeGetRecords([]byte(`{"Records":[{"eventID":"1","eventName":"REMOVE","dynamodb":{"Keys":{"pk":{"S":"1"}},"SequenceNumber":"111111111111111111111"}}]}`),
		sluice.Source{StreamARN: "arn:aws:dynamodb:us-east-1:123456789012:table/orders/stream/x", ShardID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	again := sluice.DecodeRecord(whole(&page.Records[0]))
	if again.Err() != nil || again.Table != "orders" {
		t.Errorf("of table %q, %v", again.Table, again.Err())
	}
	if got := whole(again); !bytes.Equal(got, again.Raw()) {
		t.Errorf("a whole record becomes %s", got)
	}
}

// tail reports a missing table at once, without a line about waiting.
func TestTailOfNoTableDoesNotWait(t *testing.T) {
	service := streamtest.NewService(t)
	service.CreateTable("orders", streamtest.TableOptions{})
	env := local(t, service.URL())
	var stdout, stderr bytes.Buffer
	if code := execute(t.Context(), []string{"tail", "nope"}, env, &stdout, &stderr); code != 1 || !strings.Contains(stderr.String(), "there is no such table") || strings.Contains(stderr.String(), "waiting for") {
		t.Errorf("exit code %d\n%s", code, &stderr)
	}
}

// stopper ends a command when it has written something.
type stopper struct {
	bytes.Buffer
	stop func()
}

func (s *stopper) Write(b []byte) (int, error) {
	defer s.stop()
	return s.Buffer.Write(b)
}

func TestTailSaysThatItWaits(t *testing.T) {
	service := streamtest.NewService(t)
	service.CreateTable("orders", streamtest.TableOptions{})
	env := local(t, service.URL())
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	stderr := stopper{stop: stop}
	var stdout bytes.Buffer
	if code := execute(ctx, []string{"tail", "orders"}, env, &stdout, &stderr); code != 0 || stderr.String() != "waiting for changes of orders from now on; --from TRIM_HORIZON shows earlier ones, too\n" {
		t.Errorf("exit code %d\n%s", code, &stderr)
	}
}
