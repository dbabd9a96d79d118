package streamtest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
)

const (
	listStreams      = "ListStreams"
	describeStream   = "DescribeStream"
	getShardIterator = "GetShardIterator"
	getRecords       = "GetRecords"
	describeTable    = "DescribeTable"
)

// operations are the operations of the two APIs, by the prefix of their targets.
var operations = map[string][]string{
	"DynamoDBStreams_20120810": {listStreams, describeStream, getShardIterator, getRecords},
	"DynamoDB_20120810":        {describeTable},
}

// apiError is an error response of the service.
type apiError struct {
	code    string
	message string
	status  int // 0: 400
}

func (e *apiError) Error() string { return e.code + ": " + e.message }

func invalid(format string, args ...any) *apiError {
	return &apiError{code: "ValidationException", message: fmt.Sprintf(format, args...)}
}

func notFound(format string, args ...any) *apiError {
	return &apiError{code: "ResourceNotFoundException", message: "Requested resource not found: " + fmt.Sprintf(format, args...)}
}

func trimmedAccess(sh *shard) *apiError {
	return &apiError{code: "TrimmedDataAccessException", message: "The requested data of shard " + sh.id + " has been trimmed"}
}

// request has the parameters of every operation.
type request struct {
	TableName               string
	StreamArn               string
	ShardId                 string
	ShardIteratorType       string
	SequenceNumber          *string
	ShardIterator           string
	Limit                   *int
	ExclusiveStartShardId   string
	ExclusiveStartStreamArn string
	ShardFilter             *struct{ Type, ShardId string }
}

// call is one call in progress.
type call struct {
	op     string
	in     request
	it     iterator // of GetRecords; zero when invalid
	stream *stream  // nil if it does not exist, or no longer
	shard  *shard   // also if trimmed
	now    time.Time
	note   Call
	do     effect // of a fault or chaos
}

// answer responds to a call. An error means that there is no response.
func (s *Service) answer(ctx context.Context, method, header string, body []byte) (*answer, error) {
	a, note, told, err := s.compute(method, header, body)
	if err != nil {
		return nil, err
	}
	for _, f := range told {
		f(note)
	}
	return a, s.wait(ctx, a)
}

func (s *Service) compute(method, header string, body []byte) (*answer, Call, []func(Call), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return nil, Call{}, nil, errEnded
	}
	c := &call{now: s.now()}
	out, err := s.perform(c, method, header, body)
	a := &answer{status: http.StatusOK, body: out, at: c.now, fault: c.do}
	if err != nil {
		a.status, a.body = err.encode()
		c.note.Error, c.note.Records = cmp.Or(err.code, strconv.Itoa(err.status)), 0
	}
	a.nth = s.calls.add(c.note)
	return a, c.note, s.calls.told, nil
}

func (e *apiError) encode() (status int, body []byte) {
	if e.code == "" {
		return e.status, fmt.Appendf(nil, "<html><body><h1>%d %s</h1></body></html>\n", e.status, http.StatusText(e.status))
	}
	ns := "com.amazonaws.dynamodb.v20120810#"
	if e.code == "ValidationException" || e.code == "SerializationException" || e.code == "AccessDeniedException" {
		ns = "com.amazon.coral.validate#"
	}
	body, _ = json.Marshal(map[string]string{"__type": ns + e.code, "message": e.message}) // strings never fail
	if e.status != 0 {
		return e.status, body
	}
	return http.StatusBadRequest, body
}

func (s *Service) perform(c *call, method, header string, body []byte) ([]byte, *apiError) {
	api, op := target(header)
	c.op = op
	c.note = Call{Op: op, Time: c.now}
	switch {
	case method != http.MethodPost || !slices.Contains(operations[api], op):
		return nil, &apiError{code: "UnknownOperationException", message: fmt.Sprintf("streamtest does not answer %s %q", method, header)}
	case json.Unmarshal(body, &c.in) != nil:
		return nil, &apiError{code: "SerializationException", message: "The request is not valid JSON of this operation"}
	}
	s.identify(c)
	s.decide(c)
	if e := c.do.err; e != nil {
		return nil, e
	}
	switch op {
	case listStreams:
		return s.listStreams(c)
	case describeStream:
		return s.describeStream(c)
	case getShardIterator:
		return s.getShardIterator(c)
	case getRecords:
		return s.getRecords(c)
	}
	return s.describeTable(c)
}

// identify finds the subject of a call. It stores the service's own strings,
// because they are kept for long.
func (s *Service) identify(c *call) {
	if c.op == getRecords {
		if it, err := parseIterator(c.in.ShardIterator); err == nil {
			c.it, c.in.StreamArn, c.in.ShardId = it, it.arn, it.shard
		}
	}
	n := &c.note
	n.Table, n.StreamARN, n.Shard, n.Iterator = c.in.TableName, c.in.StreamArn, c.in.ShardId, c.in.ShardIteratorType
	if c.in.SequenceNumber != nil {
		n.Sequence = sluice.Sequence(*c.in.SequenceNumber)
	}
	if f := c.in.ShardFilter; f != nil {
		n.Shard, n.Iterator = f.ShardId, f.Type
	}
	st := s.byARN[n.StreamARN]
	if st == nil {
		if n.StreamARN != "" {
			n.Table = tableOf(n.StreamARN)
		}
		return
	}
	n.Table, n.StreamARN = st.table, st.arn
	if sh := st.byID[n.Shard]; sh != nil {
		n.Shard = sh.id
		c.shard = sh
	}
	if !st.gone(c.now, s.limits.Retention) {
		c.stream = st
	}
}

// tableOf returns the table in arn:aws:dynamodb:Region:Account:table/NAME/stream/LABEL.
func tableOf(arn string) string {
	_, rest, _ := strings.Cut(arn, ":table/")
	name, _, _ := strings.Cut(rest, "/")
	return name
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // structs of strings and numbers never fail
	}
	return b
}
