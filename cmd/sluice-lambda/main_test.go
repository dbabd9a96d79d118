package main

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/access"
	"github.com/sluicehq/sluice/internal/letterkeys"
	"github.com/sluicehq/sluice/internal/localstack"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/internal/runtimeapi"
)

// queues is SQS for SendMessageBatch.
type queues struct {
	*httptest.Server
	mu     sync.Mutex
	sent   map[string][]string        // by queue URL
	refuse func(queue string) refusal // of what is sent to a queue; nil takes all
}

// refusal is the answer of SQS to a message. Without a code SQS accepts it.
type refusal struct {
	Code        string
	SenderFault bool
}

func newQueues(t *testing.T) *queues {
	q := &queues{sent: map[string][]string{}}
	q.Server = httptest.NewServer(q)
	t.Cleanup(q.Close)
	return q
}

func (q *queues) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct {
		QueueURL string `json:"QueueUrl"`
		Entries  []struct{ Id, MessageBody string }
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || r.Header.Get("X-Amz-Target") != "AmazonSQS.SendMessageBatch" {
		http.Error(w, "not expected", http.StatusBadRequest)
		return
	}
	type done struct{ Id, MessageId, MD5OfMessageBody string }
	type failed struct {
		Id string
		refusal
	}
	var all []done
	var refused []failed
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, e := range in.Entries {
		if q.refuse != nil {
			if no := q.refuse(path.Base(in.QueueURL)); no.Code != "" {
				refused = append(refused, failed{e.Id, no})
				continue
			}
		}
		q.sent[in.QueueURL] = append(q.sent[in.QueueURL], e.MessageBody)
		sum := md5.Sum([]byte(e.MessageBody))
		all = append(all, done{e.Id, "m", hex.EncodeToString(sum[:])})
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	json.NewEncoder(w).Encode(map[string]any{"Successful": all, "Failed": refused})
}

func (q *queues) take(queue string) []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := slices.Clone(q.sent[q.URL+"/1/"+queue])
	delete(q.sent, q.URL+"/1/"+queue)
	return all
}

var bootstrap string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "sluice-lambda-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	bootstrap = filepath.Join(dir, "bootstrap")
	if err := localstack.Build(context.Background(), bootstrap, "-tags", "lambda.norpc", "."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// start runs the function with a file, or without one.
func start(t *testing.T, file string, log *bytes.Buffer, env ...string) (*runtimeapi.Function, error) {
	t.Helper()
	return startBuilt(t, bootstrap, file, log, env...)
}

func startBuilt(t *testing.T, bootstrap, file string, log *bytes.Buffer, env ...string) (*runtimeapi.Function, error) {
	t.Helper()
	root := t.TempDir()
	if file != "" {
		if err := os.WriteFile(filepath.Join(root, "sluice.yaml"), []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env = append([]string{"AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=local", "AWS_SECRET_ACCESS_KEY=local", "LAMBDA_TASK_ROOT=" + root}, env...)
	return runtimeapi.Start(t.Context(), runtimeapi.Command{Path: bootstrap, Env: env, Stdout: log, Stderr: log})
}

const file = `
source: {tables: [orders]}
sinks:
  calls: {sqs: {queue: "${CALLS}"}}
routes:
  - name: active
    on: order#INSERT
    when: new.n > 1
    send: {to: calls, body: '{"id":"{PK}"}'}
deadLetter: {queue: "${DEAD}"}
`

func order(n, id string) recordtest.Spec {
	return recordtest.Spec{
		Keys: `{"PK":{"S":"` + id + `"}}`,
		New:  `{"PK":{"S":"` + id + `"},"entityType":{"S":"order"},"n":` + n + `}`,
	}
}

func TestFunction(t *testing.T) {
	q := newQueues(t)
	const key = "0123456789abcdef0123456789abcdef"
	var log bytes.Buffer
	fn, err := start(t, file, &log, "CALLS="+q.URL+"/1/calls", "DEAD="+q.URL+"/1/dead", "SLUICE_ENDPOINT_SQS="+q.URL, "SLUICE_LETTER_KEY="+key)
	if err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	// One record passes, one does not, and for one the expression fails: that record is
	// parked, and the batch continues.
	event := recordtest.Event(recordtest.New(order(`{"N":"2"}`, "a")), recordtest.New(order(`{"N":"1"}`, "b")), recordtest.New(order(`{"S":"\uFFFF"}`, "c")))
	answer, err := fn.Invoke(t.Context(), event, localtest.Patience)
	if err != nil || string(answer.Payload) != `{"batchItemFailures":[]}` {
		t.Fatalf("answer %s, %v\n%s", answer.Payload, err, log.String())
	}
	if sent := q.take("calls"); len(sent) != 1 || sent[0] != `{"id":"a"}` {
		t.Errorf("sent %q", sent)
	}
	dead := q.take("dead")
	if len(dead) != 1 {
		t.Fatalf("parked %q", dead)
	}
	e, err := deadletter.Parse([]byte(dead[0]))
	if err != nil || e.Route != "active" || !strings.Contains(e.Last.Error, "a text > a number") {
		t.Errorf("%+v, %v", e, err)
	}
	if key, _ := e.Record().Keys.Lookup("PK"); key.Str() != "c" {
		t.Errorf("%+v", e)
	}
	keys, err := letterkeys.Find(func(name string) string { return map[string]string{access.LetterKeyEnv: key}[name] }, "")
	if err = errors.Join(err, keys.Verify([]byte(dead[0]))); err != nil {
		t.Errorf("the letter is not signed: %v", err)
	}
	if _, err := fn.Stop(); err != nil {
		t.Error(err)
	}
	if strings.Contains(log.String(), "not signed") || strings.Contains(dead[0]+log.String(), key) {
		t.Errorf("the log says that letters are not signed, or it or the letter has the key\n%s", log.String())
	}
	if !strings.Contains(log.String(), `"Route":"active"`) {
		t.Errorf("no metrics in the log\n%s", log.String())
	}
}

// A letter that the dead-letter queue refuses is not lost. After a temporary refusal it
// is sent again. After a permanent one the batch ends before its record, and later
// records come again.
func TestDeadLettersRefused(t *testing.T) {
	for _, tt := range []struct {
		name   string
		no     refusal
		times  int // that a letter is refused
		parked int
		whole  bool
	}{
		{"for the moment", refusal{"InternalError", false}, 1, 1, true},
		{"for good", refusal{"InvalidMessageContents", true}, 1000, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := newQueues(t)
			left := tt.times
			q.refuse = func(queue string) refusal {
				if queue != "dead" || left == 0 {
					return refusal{}
				}
				left--
				return tt.no
			}
			var log bytes.Buffer
			fn, err := start(t, file, &log, "CALLS="+q.URL+"/1/calls", "DEAD="+q.URL+"/1/dead", "SLUICE_ENDPOINT_SQS="+q.URL)
			if err != nil {
				t.Fatalf("%v\n%s", err, log.String())
			}
			bad := recordtest.New(order(`{"S":"x"}`, "b"))
			answer, err := fn.Invoke(t.Context(), recordtest.Event(recordtest.New(order(`{"N":"2"}`, "a")), bad), localtest.Patience)
			want := `{"batchItemFailures":[]}`
			if !tt.whole {
				want = `{"batchItemFailures":[{"itemIdentifier":"` + string(bad.Sequence) + `"}]}`
			}
			if err != nil || string(answer.Payload) != want {
				t.Errorf("answer %s, %v; want %s", answer.Payload, err, want)
			}
			if dead := q.take("dead"); len(dead) != tt.parked {
				t.Errorf("parked %q", dead)
			}
			if sent := q.take("calls"); len(sent) != 1 {
				t.Errorf("sent %q", sent)
			}
			if _, err := fn.Stop(); err != nil {
				t.Error(err)
			}
			if !strings.Contains(log.String(), "dead letters are not signed: ") {
				t.Errorf("nobody is told that there is no key\n%s", log.String())
			}
		})
	}
}

// Without a dead-letter queue, a permanent failure stops its batch.
func TestNoDeadLetters(t *testing.T) {
	q := newQueues(t)
	fn, err := start(t, strings.Replace(file, "deadLetter", "#", 1), new(bytes.Buffer), "CALLS="+q.URL+"/1/calls", "SLUICE_EMF=off")
	if err != nil {
		t.Fatal(err)
	}
	rec := recordtest.New(order(`{"S":"x"}`, "c"))
	answer, err := fn.Invoke(t.Context(), recordtest.Event(rec), localtest.Patience)
	if want := `{"batchItemFailures":[{"itemIdentifier":"` + string(rec.Sequence) + `"}]}`; err != nil || string(answer.Payload) != want {
		t.Errorf("answer %s, %v; want %s", answer.Payload, err, want)
	}
	if _, err := fn.Stop(); err != nil {
		t.Error(err)
	}
}

func TestStartErrors(t *testing.T) {
	for name, tt := range map[string]struct {
		file string
		env  []string
		want []string
	}{
		"no file":      {"", nil, []string{"sluice.yaml: there is no such file: put it beside the bootstrap, or name another by SLUICE_CONFIG"}},
		"another file": {file, []string{"SLUICE_CONFIG=conf/other.yaml"}, []string{"conf/other.yaml: there is no such file"}},
		"mistakes": {"source: {tables: orders}\nroutes: [{name: x, on: a, lgo: {}}]\n", nil, []string{
			`sluice.yaml:2:24: routes[0].on: pattern "a"`, `sluice.yaml:2:27: routes[0]: unknown field "lgo"; did you mean log?`}},
		"no variable": {file, []string{"DEAD=d"}, []string{"sinks.calls.sqs.queue: the variable CALLS is not set"}},
		"no queue for what is old": {"source: {tables: [orders]}\nroutes: [{name: x, on: 'a#*', log: {}}]\ndeadLetter: {maxAge: 2h}\n", nil, []string{
			"deadLetter.maxAge is 2h0m0s, and a function has no place for what is older: name a queue by deadLetter.queue"}},
		"a key that anybody could guess": {file, []string{"CALLS=c", "DEAD=d", "SLUICE_LETTER_KEY=secret"}, []string{
			"deadLetter: $SLUICE_LETTER_KEY: key 1 has 6 characters: want at least 32"}},
		"no file of keys": {strings.Replace(file, "deadLetter: {", "deadLetter: {keyFile: none, ", 1), []string{"CALLS=c", "DEAD=d"}, []string{
			"deadLetter: key file ", "none does not exist"}},
		"items that no invocation knows": {strings.Replace(file, "deadLetter: {", "deadLetter: {park: item, ", 1), []string{"CALLS=c", "DEAD=d"}, []string{
			"deadLetter.park is item, and a function cannot keep that"}},
		"no region": {file, []string{"CALLS=c", "DEAD=d", "AWS_REGION="}, []string{"aws.region: no Region: set it here, or by AWS_REGION"}},
		"metrics":   {file, []string{"CALLS=c", "DEAD=d", "SLUICE_EMF=maybe"}, []string{"SLUICE_EMF"}},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			fn, err := start(t, tt.file, &log, tt.env...)
			if err == nil {
				fn.Kill()
				t.Fatal("it starts")
			}
			for _, want := range tt.want {
				if !strings.Contains(log.String(), want) {
					t.Errorf("%s\nwant %s", log.String(), want)
				}
			}
			for line := range strings.SplitSeq(strings.TrimSpace(log.String()), "\n") {
				if !strings.HasPrefix(line, "sluice-lambda: ") {
					t.Errorf("line %s", line)
				}
			}
		})
	}
}
