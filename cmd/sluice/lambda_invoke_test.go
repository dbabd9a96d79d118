package main

import (
	"bytes"
	"crypto/md5"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/localstack"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/internal/runtimeapi"
)

// A built function runs in its package as under Lambda. It reads the packed file and
// handles the event. The answer names the failed records.
func TestLambdaInvokeABuiltFunction(t *testing.T) {
	sent := make(chan string, 10)
	sqs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		sent <- string(body)
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		if strings.Contains(string(body), "o-2") {
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, `{"__type":"com.amazonaws.sqs#QueueDoesNotExist","message":"no such queue"}`)
			return
		}
		io.WriteString(w, `{"Successful":[{"Id":"0","MessageId":"m","MD5OfMessageBody":"`+md5Of(`{"order":"o-1"}`)+`"}],"Failed":[]}`)
	}))
	defer sqs.Close()
	pack := t.TempDir()
	bootstrap := filepath.Join(pack, "bootstrap")
	if err := localstack.Build(t.Context(), bootstrap, "-tags", "lambda.norpc", "../sluice-lambda"); err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf("source: {tables: [test]}\nsinks: {queue: {sqs: {queue: %s/1/jobs}}}\nroutes:\n  - {name: send, on: [order#INSERT], send: {to: queue, body: '{\"order\":\"{PK}\"}'}}\n", sqs.URL)
	if err := os.WriteFile(filepath.Join(pack, "sluice.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"AWS_REGION": "", "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local", "SLUICE_ENDPOINT_SQS": sqs.URL,
		"AWS_LAMBDA_RUNTIME_API": "127.0.0.1:1", "SLUICE_EMF": "off", "AWS_MAX_ATTEMPTS": "1", // which are not the function's
	} {
		t.Setenv(name, value)
	}
	event := func(id string) string {
		path := filepath.Join(pack, id+".json")
		rec := recordtest.New(recordtest.Spec{Keys: `{"PK":{"S":"` + id + `"}}`, New: `{"PK":{"S":"` + id + `"},"entityType":{"S":"order"}}`})
		if err := os.WriteFile(path, recordtest.Event(rec), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	invoke := func(id string) (got invoked, exit int) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		exit = execute(t.Context(), []string{"lambda", "invoke", event(id), "--bootstrap", pack, "--json"}, os.Getenv, &stdout, &stderr)
		if err := json.Unmarshal(stdout.Bytes(), &got); err != nil {
			t.Fatalf("%v\n%s%s", err, &stdout, &stderr)
		}
		return got, exit
	}
	got, exit := invoke("o-1")
	if exit != 0 || len(got.Again) != 0 || got.Effects == nil || got.Effects.Settled != 1 ||
		!slices.Equal(got.Effects.Routes, []routeEffects{{Route: "send", Done: 1}}) || !slices.Equal(got.Effects.Sinks, []sinkEffects{{"queue", 1, 0}}) {
		t.Errorf("exit %d, %+v, %+v", exit, got, got.Effects)
	}
	if len(sent) != 1 {
		t.Fatalf("%d requests, want 1", len(sent))
	}
	if body := <-sent; !strings.Contains(body, "o-1") {
		t.Errorf("sent %s", body)
	}
	got, exit = invoke("o-2")
	if exit != exitFound || len(got.Again) != 1 || got.Effects == nil || got.Effects.Settled != 0 ||
		!strings.Contains(strings.Join(got.Log, "\n"), "no such queue") || string(got.Answer) == "" || got.Error != "" {
		t.Errorf("exit %d, %+v, %+v", exit, got, got.Effects)
	}
}

// A function of another machine is named as that.
func TestLambdaInvokeOnAnotherMachine(t *testing.T) {
	head := make([]byte, 64) // of a program for SPARC
	copy(head, "\x7fELF\x02\x02\x01")
	binary.BigEndian.PutUint16(head[16:], 2)  // it can be executed
	binary.BigEndian.PutUint16(head[18:], 43) // SPARC, 64 bits
	binary.BigEndian.PutUint32(head[20:], 1)
	binary.BigEndian.PutUint16(head[52:], 64)
	path := filepath.Join(t.TempDir(), "bootstrap")
	if err := os.WriteFile(path, head, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := invokeOnce(t.Context(), runtimeapi.Command{Path: path}, nil, time.Minute)
	if err == nil || !strings.Contains(err.Error(), "does not run on this machine") || !strings.Contains(err.Error(), "it is for linux/sparcv9") {
		t.Errorf("error %v", err)
	}
}

// A function without an answer is killed at its timeout.
func TestLambdaInvokeWithoutAnAnswer(t *testing.T) {
	log := &functionLog{}
	_, err := invokeOnce(t.Context(), runtimeapi.Command{Path: os.Args[0], Env: []string{"FUNCTION=silent"}, Stdout: log, Stderr: log}, []byte("{}"), 20*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "no answer within 20ms") || !strings.Contains(err.Error(), "--timeout") {
		t.Errorf("error %v", err)
	}
}

// The command separates metrics from the log, also if writes cut lines, and adds them
// up.
func TestFunctionLog(t *testing.T) {
	var live strings.Builder
	l := &functionLog{live: &live}
	text := `{"_aws":{},"Invocations":1,"Records":5,"Settled":4,"Unrouted":1}` + "\n" +
		"hello\n" +
		`{"_aws":{},"Route":"r","Done":3,"Skipped":0,"Parked":1,"Failed":1}` + "\n" +
		`{"_aws":{},"Sink":"s","CommitItems":[2,3],"CommitFailures":1}` + "\n" +
		`{"_aws":{},"Route":"r","Filtered":2}` + "\n" + `{"_aws":{},"Route":"none","Filtered":5}` + "\n" + `{"_aws":{},"Sink":"s","Own":7}` + "\n" +
		`{"_aws":"broken"` + "\nthe end"
	for _, b := range []byte(text) {
		if _, err := l.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	l.end()
	if want := []string{"hello", `{"_aws":"broken"`, "the end"}; !slices.Equal(l.lines, want) || live.String() != strings.Join(want, "\n")+"\n" {
		t.Errorf("lines %q", l.lines)
	}
	r := invoked{Effects: l.effects, Answer: []byte(`{}`), TookMS: 1, StartMS: 2}
	const want = "records  5, 4 settled, 1 taken by no route\nroute    r: 3 done, 2 passed over by its conditions, 1 parked, 1 failed\nroute    none: 0 done, 5 passed over by its conditions\nsink     s: 4 sent or written, 1 failed\nanswer   {}\ntook     1.0 ms, after 2.0 ms to start\n"
	if got := r.text(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

func md5Of(text string) string { return fmt.Sprintf("%x", md5.Sum([]byte(text))) }
