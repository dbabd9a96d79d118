package dynamodb

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
)

// tablesStub speaks DynamoDB's protocol for tables whose key is "pk", and "sk"
// where an item has one. It is an HTTP client, so that tests under virtual
// time need no network.
type tablesStub struct {
	t     *testing.T
	delay time.Duration                        // of each answer
	reply func(n int, writes []string) stubbed // to BatchWriteItem n, from 0; nil does all
	other func(call string) (int, string)      // to other calls; default a table with the key pk
	units func(table, write string) float64    // consumed; default none is told

	mu       sync.Mutex
	calls    []string          // other than BatchWriteItem
	bodies   []string          // of calls
	requests [][]string        // what each BatchWriteItem was to write: "t+k=value" or "t-k"
	items    map[string]string // value by "t k"
	running  int
	most     int // requests at a time
}

// stubbed is an answer to a BatchWriteItem.
type stubbed struct {
	back   []string // writes that come back unprocessed
	raw    string   // answers with this instead
	status int      // refuses the request …
	code   string   // … with this
	lost   bool     // the request is done and its answer lost
	hang   bool     // there is no answer until the client gives up
}

type stubRequest struct {
	PutRequest    *struct{ Item json.RawMessage }
	DeleteRequest *struct{ Key json.RawMessage }
}

// of is "t+k=value" or "t-k".
func (s *tablesStub) of(table string, r stubRequest) (write, key, value string) {
	raw, sign := json.RawMessage(nil), "-"
	if r.PutRequest != nil {
		raw, sign = r.PutRequest.Item, "+"
	} else {
		raw = r.DeleteRequest.Key
	}
	it, err := item.Parse(raw)
	if err != nil {
		s.t.Error(err)
	}
	text := func(name string) string { v, _ := it.Lookup(name); return v.Str() }
	key = text("pk")
	if sk := text("sk"); sk != "" {
		key += "/" + sk
	}
	write = table + sign + key
	if value = text("v"); value != "" {
		write += "=" + value
	}
	return write, table + " " + key, value
}

func (s *tablesStub) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Error(err)
	}
	call := strings.TrimPrefix(r.Header.Get("X-Amz-Target"), "DynamoDB_20120810.")
	status, answer, lost := s.answer(call, body)
	if lost {
		return nil, io.ErrUnexpectedEOF
	}
	if status == hangs {
		<-r.Context().Done()
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.WriteHeader(status)
	w.WriteString(answer)
	return w.Result(), nil
}

const hangs = -1

func refusal(code string) string {
	return fmt.Sprintf(`{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":"refused"}`, code)
}

func (s *tablesStub) answer(call string, body []byte) (status int, answer string, lost bool) {
	if call != "BatchWriteItem" {
		s.mu.Lock()
		s.calls, s.bodies = append(s.calls, call), append(s.bodies, string(body))
		s.mu.Unlock()
		time.Sleep(s.delay)
		if s.other != nil {
			status, answer = s.other(call)
			return status, answer, status == 0
		}
		return 200, `{"Table":{"TableStatus":"ACTIVE","KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}]}}`, false
	}
	var in struct {
		RequestItems           map[string][]stubRequest
		ReturnConsumedCapacity string
	}
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(&in); err != nil {
		s.t.Error(err)
	}
	if in.ReturnConsumedCapacity != "TOTAL" {
		s.t.Error("the request does not ask for what it consumes")
	}
	var writes, keys, values, tables []string
	var raw []stubRequest
	for table, rs := range in.RequestItems {
		for _, r := range rs {
			w, k, v := s.of(table, r)
			if slices.Contains(keys, k) {
				s.t.Errorf("a request writes %s twice: %q", k, writes)
			}
			writes, keys, values, tables, raw = append(writes, w), append(keys, k), append(values, v), append(tables, table), append(raw, r)
		}
	}
	if len(writes) == 0 || len(writes) > 25 {
		s.t.Errorf("a request with %d writes", len(writes))
	}
	sorted := slices.Sorted(slices.Values(writes))
	s.mu.Lock()
	n := len(s.requests)
	s.requests = append(s.requests, sorted)
	s.running++
	s.most = max(s.most, s.running)
	s.mu.Unlock()
	time.Sleep(s.delay)
	var a stubbed
	if s.reply != nil {
		a = s.reply(n, sorted)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
	if a.hang {
		return hangs, "", false
	}
	if a.code != "" || a.status != 0 {
		return max(a.status, 400), refusal(a.code), false
	}
	back := map[string][]stubRequest{}
	consumed := map[string]float64{}
	for i, w := range writes {
		switch {
		case slices.Contains(a.back, w):
			back[tables[i]] = append(back[tables[i]], raw[i])
			continue
		case raw[i].PutRequest != nil:
			s.items[keys[i]] = values[i]
		default:
			delete(s.items, keys[i])
		}
		if s.units != nil {
			consumed[tables[i]] += s.units(tables[i], w)
		}
	}
	if a.lost {
		return 0, "", true
	}
	if a.raw != "" {
		return 200, a.raw, false
	}
	out := map[string]any{"UnprocessedItems": clean(back)}
	var list []map[string]any
	for table, n := range consumed {
		list = append(list, map[string]any{"TableName": table, "CapacityUnits": n})
	}
	out["ConsumedCapacity"] = list
	text, err := json.Marshal(out)
	if err != nil {
		s.t.Error(err)
	}
	return 200, string(text), false
}

// clean leaves out the requests that are null.
func clean(back map[string][]stubRequest) map[string][]map[string]any {
	out := map[string][]map[string]any{}
	for table, rs := range back {
		for _, r := range rs {
			m := map[string]any{"PutRequest": r.PutRequest}
			if r.PutRequest == nil {
				m = map[string]any{"DeleteRequest": r.DeleteRequest}
			}
			out[table] = append(out[table], m)
		}
	}
	return out
}

func (s *tablesStub) store(t *testing.T, o Options) *Store {
	t.Helper()
	s.t, s.items = t, map[string]string{}
	cfg := aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""), HTTPClient: s}
	st, err := New(cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// expect compares the requests, each as its writes in order.
func (s *tablesStub) expect(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for _, r := range s.requests {
		got = append(got, strings.Join(r, " "))
	}
	if !slices.Equal(got, want) {
		t.Errorf("requests %q, want %q", got, want)
	}
}

// thing is an item or, without a value, a key.
func thing(pk, v string) sluice.Item {
	attrs := []item.Attribute{item.String("pk", pk)}
	if v != "" {
		attrs = append(attrs, item.String("v", v))
	}
	return item.Of(attrs...)
}

func things(pks ...string) (its []sluice.Item) {
	for _, pk := range pks {
		pk, v, _ := strings.Cut(pk, "=")
		its = append(its, thing(pk, v))
	}
	return its
}
