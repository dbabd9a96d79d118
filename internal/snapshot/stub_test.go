package snapshot

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/state"
)

// stub answers the calls of the real SDK client in memory, so that tests run in
// a bubble of synctest. A segment's items come in the order of their keys'
// hashes, as those of the service do.
type stub struct {
	mu       sync.Mutex
	items    map[string]string // by pk: the item's JSON
	id       string
	created  float64
	stream   string // label; "" is none
	capacity int64  // provisioned; 0 is on demand
	count    int64  // what DescribeTable says
	bytes    int64
	pageSize int     // items, when the request has no limit
	perItem  float64 // units
	took     time.Duration
	hidden   func(pk string) bool // left out, so that pages are empty

	// fail may answer a call: "" is good, an error's type a failure, "cut" and
	// "damaged" a good answer that does not arrive whole, "void" one with nothing
	// in it.
	fail  func(op string, nth int) string
	calls []stubCall
}

type stubCall struct {
	op string
	at time.Time
	in scanIn
	n  int // items in the answer
}

type scanIn struct {
	TableName              string
	Segment, TotalSegments int
	Limit                  int
	ConsistentRead         bool
	ReturnConsumedCapacity string
	FilterExpression       string
	ExclusiveStartKey      map[string]map[string]string
}

const (
	tableName = "orders"
	tableARN  = "arn:aws:dynamodb:us-east-1:123456789012:table/" + tableName
	label     = "2026-01-01T00:00:00.000"
)

func newStub(n int) *stub {
	s := &stub{items: map[string]string{}, id: "id-1", created: 1.7e9, stream: label, pageSize: 10, perItem: 0.5, count: int64(n), bytes: int64(n) * 100,
		hidden: func(string) bool { return false }}
	for i := range n {
		s.put(fmt.Sprintf("k%04d", i), 1)
	}
	return s
}

func (s *stub) put(pk string, version int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.items[pk] = fmt.Sprintf(`{"entityType":{"S":"order"},"pk":{"S":%q},"v":{"N":"%d"}}`, pk, version)
}

func (s *stub) config() aws.Config {
	return aws.Config{
		Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""),
		BaseEndpoint: aws.String("http://stub"), HTTPClient: &http.Client{Transport: s},
	}
}

func (s *stub) scans() (calls []stubCall) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		if c.op == "Scan" {
			calls = append(calls, c)
		}
	}
	return calls
}

func place(pk string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(pk))
	return h.Sum32()
}

func (s *stub) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	_, op, _ := strings.Cut(req.Header.Get("X-Amz-Target"), ".")
	if s.took > 0 {
		time.Sleep(s.took)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var in scanIn
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	nth := 0
	for _, c := range s.calls {
		if c.op == op {
			nth++
		}
	}
	s.calls = append(s.calls, stubCall{op: op, at: time.Now(), in: in})
	how := ""
	if s.fail != nil {
		how = s.fail(op, nth)
	}
	status, text := http.StatusOK, ""
	switch {
	case how != "" && strings.Contains(how, "Exception") || strings.Contains(how, "Error"):
		status, text = http.StatusBadRequest, fmt.Sprintf(`{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":"scripted"}`, how)
	case op == "DescribeTable":
		text = s.describe()
	default:
		text = s.scan(in)
	}
	answer := []byte(text)
	header := http.Header{"X-Amz-Crc32": {fmt.Sprint(crc32.ChecksumIEEE(answer))}, "Content-Type": {"application/x-amz-json-1.0"}}
	length := int64(len(answer))
	switch how {
	case "cut":
		answer = answer[:len(answer)/2]
	case "damaged":
		answer = bytes.ToUpper(answer)
	case "void":
		answer = []byte("{}")
		length = 2
		header.Del("X-Amz-Crc32")
	}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(bytes.NewReader(answer)), ContentLength: length, Request: req}, nil
}

func (s *stub) describe() string {
	stream := ""
	if s.stream != "" {
		stream = fmt.Sprintf(`"StreamSpecification":{"StreamEnabled":true,"StreamViewType":"NEW_AND_OLD_IMAGES"},"LatestStreamArn":"%s/stream/%s",`, tableARN, s.stream)
	}
	mode := "PROVISIONED"
	if s.capacity == 0 {
		mode = "PAY_PER_REQUEST"
	}
	return fmt.Sprintf(`{"Table":{%s"TableArn":%q,"TableId":%q,"CreationDateTime":%f,"ItemCount":%d,"TableSizeBytes":%d,
		"BillingModeSummary":{"BillingMode":%q},"ProvisionedThroughput":{"ReadCapacityUnits":%d,"WriteCapacityUnits":1},
		"KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}]}}`, stream, tableARN, s.id, s.created, s.count, s.bytes, mode, s.capacity)
}

func (s *stub) scan(in scanIn) string {
	var keys []string
	after, total := in.ExclusiveStartKey["pk"]["S"], uint32(max(in.TotalSegments, 1))
	for pk := range s.items {
		if place(pk)%total == uint32(in.Segment) && (after == "" || compare(pk, after) > 0) {
			keys = append(keys, pk)
		}
	}
	slices.SortFunc(keys, compare)
	n := s.pageSize
	if in.Limit > 0 {
		n = min(n, in.Limit)
	}
	n = min(n, len(keys))
	var items []string
	for _, pk := range keys[:n] {
		if !s.hidden(pk) {
			items = append(items, s.items[pk])
		}
	}
	last := ""
	if n < len(keys) {
		last = fmt.Sprintf(`,"LastEvaluatedKey":{"pk":{"S":%q}}`, keys[n-1])
	}
	s.calls[len(s.calls)-1].n = len(items)
	return fmt.Sprintf(`{"Count":%d,"ScannedCount":%d,"Items":[%s],"ConsumedCapacity":{"CapacityUnits":%f,"TableName":%q}%s}`,
		len(items), n, strings.Join(items, ","), float64(n)*s.perItem, in.TableName, last)
}

// compare orders keys by their hashes, as the service does.
func compare(a, b string) int { return cmp.Or(cmp.Compare(place(a), place(b)), strings.Compare(a, b)) }

// started is a store in which the reading of the table's stream has begun.
func started(t *testing.T) *state.Memory {
	t.Helper()
	m := state.NewMemory()
	begin(t, m, tableARN+"/stream/"+label)
	return m
}

func begin(t *testing.T, m state.Store, arn string) {
	t.Helper()
	if _, err := m.Start(t.Context(), state.Stream{Application: "sluice", ARN: arn}, state.Start{Position: "TRIM_HORIZON"}); err != nil {
		t.Fatal(err)
	}
}

// key returns the pk of a record.
func key(rec *sluice.Record) string {
	v, _ := rec.Keys.Lookup("pk")
	return v.Str()
}
