package poller

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

// stub answers the calls of the real SDK client in memory, so that tests run
// in a bubble of synctest. It does what it is told: no more of the service is
// in it than the tests need.
type stub struct {
	mu      sync.Mutex
	tables  map[string]string // name → stream ARN, or "" without a stream
	streams map[string]*stubStream
	perPage int // shards; default 100

	// fail, when set, may answer a call with an error: "Type" or "Type:status".
	// "hang" never answers; "linger" ends a second after its context did; "void"
	// is a good answer with nothing in it.
	fail  func(op, shard string) string
	calls []stubCall
	open  atomic.Int32 // calls that are not answered
}

type stubCall struct {
	op, shard, kind string // kind of iterator
	stream          string // ARN
	at              time.Time
}

type stubStream struct {
	table, arn, view, status string
	shards                   []*stubShard
	hidden                   map[string]bool // not listed
	loops                    bool            // pages repeat for ever
}

type stubShard struct {
	id, parent string
	closed     bool
	trimmed    int
	records    []stubRecord
	empty      int    // pages before the next records
	text       string // in each image
}

type stubRecord struct {
	seq     string
	key     string
	created time.Time
}

const stubView = "NEW_AND_OLD_IMAGES"

func stubARN(table string) string {
	return "arn:aws:dynamodb:us-east-1:123456789012:table/" + table + "/stream/2026-01-01T00:00:00.000"
}

func newStub() *stub {
	return &stub{tables: map[string]string{}, streams: map[string]*stubStream{}, perPage: 100}
}

func (s *stub) table(name string, shards ...*stubShard) *stubStream {
	st := &stubStream{table: name, arn: stubARN(name), view: stubView, status: "ENABLED", shards: shards, hidden: map[string]bool{}}
	s.tables[name], s.streams[st.arn] = st.arn, st
	return st
}

// disable closes the stream and its shards.
func (s *stub) disable(st *stubStream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st.status = "DISABLED"
	for _, sh := range st.shards {
		sh.closed = true
	}
}

// enable gives the table a new stream, named by the present time.
func (s *stub) enable(table string, shards ...*stubShard) *stubStream {
	s.mu.Lock()
	defer s.mu.Unlock()
	arn, _, _ := strings.Cut(stubARN(table), "/stream/")
	arn += "/stream/" + time.Now().UTC().Format("2006-01-02T15:04:05.000")
	st := &stubStream{table: table, arn: arn, view: stubView, status: "ENABLED", shards: shards, hidden: map[string]bool{}}
	s.tables[table], s.streams[arn] = arn, st
	return st
}

func (s *stub) config() aws.Config {
	return aws.Config{
		Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""),
		BaseEndpoint: aws.String("http://stub"), HTTPClient: &http.Client{Transport: s},
	}
}

// put appends records of item key.
func (s *stub) put(sh *stubShard, keys ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range keys {
		sh.records = append(sh.records, stubRecord{fmt.Sprintf("%s%d", stubBase, len(sh.records)+1), k, time.Now()})
	}
}

// stubBase makes sequence numbers that grow in width: 1…9 are followed by 10.
const stubBase = "10000000000000000000"

func (s *stub) with(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *stub) count(op, shard string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		if c.op == op && (shard == "" || c.shard == shard) {
			n++
		}
	}
	return n
}

// describes counts the listings of a stream.
func (s *stub) describes(arn string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		if c.op == "DescribeStream" && c.stream == arn {
			n++
		}
	}
	return n
}

// last returns the newest call; within fail it is the one to be answered.
func (s *stub) last() stubCall { return s.calls[len(s.calls)-1] }

func (s *stub) iterators(shard string) (kinds []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		if c.op == "GetShardIterator" && c.shard == shard {
			kinds = append(kinds, c.kind)
		}
	}
	return kinds
}

type stubError string

func (e stubError) Error() string { return string(e) }

func (s *stub) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	var in map[string]any
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	_, op, _ := strings.Cut(req.Header.Get("X-Amz-Target"), ".")
	s.open.Add(1)
	defer s.open.Add(-1)
	out, err := s.answer(op, in)
	status := http.StatusOK
	if err != nil {
		e := err.Error()
		if e == "hang" || e == "linger" {
			<-req.Context().Done()
			if e == "linger" {
				time.Sleep(time.Second)
			}
			return nil, req.Context().Err()
		}
		typ, code, ok := strings.Cut(e, ":")
		status = http.StatusBadRequest
		if ok {
			status, _ = strconv.Atoi(code)
		}
		out = map[string]any{"__type": "com.amazonaws.dynamodb.v20120810#" + typ, "message": fmt.Sprint("scripted at ", time.Now())}
		if e == "void" {
			status, out = http.StatusOK, map[string]any{}
		}
	}
	data, err := json.Marshal(out)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: status, Header: http.Header{"Date": {time.Now().UTC().Format(http.TimeFormat)}},
		Body: io.NopCloser(bytes.NewReader(data)), ContentLength: int64(len(data)), Request: req,
	}, nil
}

func (s *stub) answer(op string, in map[string]any) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	str := func(k string) string { v, _ := in[k].(string); return v }
	shardID := str("ShardId")
	it := strings.Split(str("ShardIterator"), "|")
	if op == "GetRecords" {
		shardID = it[1]
	}
	kind := str("ShardIteratorType")
	filter, _ := in["ShardFilter"].(map[string]any)
	if filter != nil {
		shardID, kind = filter["ShardId"].(string), filter["Type"].(string)
	}
	s.calls = append(s.calls, stubCall{op, shardID, kind, str("StreamArn"), time.Now()})
	if s.fail != nil {
		if e := s.fail(op, shardID); e != "" {
			return nil, stubError(e)
		}
	}
	switch op {
	case "DescribeTable":
		arn, ok := s.tables[str("TableName")]
		if !ok {
			return nil, stubError("ResourceNotFoundException")
		}
		t := map[string]any{"TableName": str("TableName")}
		if arn != "" {
			t["LatestStreamArn"] = arn
		}
		return map[string]any{"Table": t}, nil
	case "ListStreams":
		var all []any
		for arn, st := range s.streams {
			if st.table == str("TableName") {
				all = append(all, map[string]any{"StreamArn": arn, "TableName": st.table})
			}
		}
		return map[string]any{"Streams": all}, nil
	case "DescribeStream":
		st := s.streams[str("StreamArn")]
		if st == nil {
			return nil, stubError("ResourceNotFoundException")
		}
		return st.describe(str("ExclusiveStartShardId"), filter, s.perPage), nil
	case "GetShardIterator":
		sh := s.shard(str("StreamArn"), shardID)
		if sh == nil {
			return nil, stubError("ResourceNotFoundException")
		}
		from := sh.trimmed
		switch str("ShardIteratorType") {
		case "LATEST":
			from = len(sh.records)
		case "AT_SEQUENCE_NUMBER": // of the shard's beginning
			if from = 0; sh.trimmed > 0 {
				return nil, stubError("TrimmedDataAccessException")
			}
		case "AFTER_SEQUENCE_NUMBER":
			i := slices.IndexFunc(sh.records, func(r stubRecord) bool { return r.seq == str("SequenceNumber") })
			if i < 0 {
				return nil, stubError("ValidationException")
			}
			if from = i + 1; from <= sh.trimmed && sh.trimmed > 0 {
				return nil, stubError("TrimmedDataAccessException")
			}
		}
		return map[string]any{"ShardIterator": stubIterator(str("StreamArn"), shardID, from)}, nil
	case "GetRecords":
		sh := s.shard(it[0], it[1])
		if sh == nil {
			return nil, stubError("ResourceNotFoundException")
		}
		limit := maxRecords
		if l, ok := in["Limit"].(float64); ok {
			limit = int(l)
		}
		return sh.page(it, limit)
	}
	return nil, stubError("UnknownOperationException")
}

func stubIterator(arn, shard string, from int) string {
	return fmt.Sprintf("%s|%s|%d|%d", arn, shard, from, time.Now().UnixNano())
}

func (s *stub) shard(arn, id string) *stubShard {
	if st := s.streams[arn]; st != nil {
		for _, sh := range st.shards {
			if sh.id == id {
				return sh
			}
		}
	}
	return nil
}

func (st *stubStream) describe(after string, filter map[string]any, perPage int) any {
	var shards []any
	last := ""
	for i, sh := range st.shards {
		if st.hidden[sh.id] || filter != nil && sh.parent != filter["ShardId"] {
			continue
		}
		if after != "" && i <= slices.IndexFunc(st.shards, func(s *stubShard) bool { return s.id == after }) {
			continue
		}
		r := map[string]any{"StartingSequenceNumber": stubBase + "0"}
		if sh.closed {
			r["EndingSequenceNumber"] = fmt.Sprintf("%s%d", stubBase, len(sh.records)+1)
		}
		d := map[string]any{"ShardId": sh.id, "SequenceNumberRange": r}
		if sh.parent != "" {
			d["ParentShardId"] = sh.parent
		}
		shards = append(shards, d)
		if len(shards) == perPage {
			last = sh.id
			break
		}
	}
	if st.loops {
		last = st.shards[0].id
	}
	return map[string]any{"StreamDescription": map[string]any{
		"StreamArn": st.arn, "TableName": st.table, "StreamViewType": st.view, "StreamStatus": st.status,
		"Shards": shards, "LastEvaluatedShardId": last,
	}}
}

func (sh *stubShard) page(it []string, limit int) (any, error) {
	from, _ := strconv.Atoi(it[2])
	issued, _ := strconv.ParseInt(it[3], 10, 64)
	if time.Since(time.Unix(0, issued)) > 15*time.Minute {
		return nil, stubError("ExpiredIteratorException")
	}
	if from < sh.trimmed {
		return nil, stubError("TrimmedDataAccessException")
	}
	to := min(from+limit, len(sh.records))
	if sh.empty > 0 {
		sh.empty--
		to = from
	}
	recs := []any{}
	for _, r := range sh.records[from:to] {
		recs = append(recs, map[string]any{
			"eventID": "e" + r.seq, "eventName": "INSERT", "eventVersion": "1.1", "eventSource": "aws:dynamodb", "awsRegion": "us-east-1",
			"dynamodb": map[string]any{
				"ApproximateCreationDateTime": r.created.Unix(), "SequenceNumber": r.seq, "SizeBytes": 10, "StreamViewType": stubView,
				"Keys":     map[string]any{"id": map[string]any{"S": r.key}},
				"NewImage": map[string]any{"id": map[string]any{"S": r.key}, "text": map[string]any{"S": sh.text}},
			},
		})
	}
	out := map[string]any{"Records": recs}
	if !sh.closed || to < len(sh.records) || sh.empty > 0 {
		out["NextShardIterator"] = stubIterator(it[0], it[1], to)
	}
	return out, nil
}
