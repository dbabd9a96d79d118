package dynamodb

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/google/go-cmp/cmp"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/internal/tally"
	"github.com/sluicehq/sluice/item"
)

// wire is an HTTP client that notes requests and answers them.
type wire struct {
	t      *testing.T
	calls  []string
	bodies []string
	answer func(n int) (status int, body string) // status 0: the answer is lost
}

func (w *wire) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.t.Error(err)
	}
	w.calls = append(w.calls, strings.TrimPrefix(r.Header.Get("X-Amz-Target"), "DynamoDB_20120810."))
	w.bodies = append(w.bodies, string(body))
	status, text := 200, "{}"
	if w.answer != nil {
		status, text = w.answer(len(w.calls))
	}
	if status == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	rec := httptest.NewRecorder()
	rec.Header().Set("Content-Type", "application/x-amz-json-1.0")
	rec.WriteHeader(status)
	rec.WriteString(text)
	return rec.Result(), nil
}

func (w *wire) store(o Options) *Store {
	s, err := New(aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""), HTTPClient: w}, o)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *wire) request(i int) (m map[string]any) {
	if err := json.Unmarshal([]byte(w.bodies[i]), &m); err != nil {
		w.t.Fatal(err)
	}
	return m
}

func TestValues(t *testing.T) {
	it, err := item.Parse([]byte(`{"ns":{"NS":["123456789012345678901234567890.12345678","1"]},"b":{"B":"AP9//w=="},"bs":{"BS":["AP8="]},"l":{"L":[{"NULL":true}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	of := func(name string) item.Value { v, _ := it.Lookup(name); return v }
	for want, v := range map[string]any{
		`{"S":"x"}`:                    "x",
		`{"S":""}`:                     "",
		`{"N":"-1"}`:                   -1,
		`{"N":"-128"}`:                 int8(-128),
		`{"N":"9223372036854775807"}`:  int64(math.MaxInt64),
		`{"N":"18446744073709551615"}`: uint64(math.MaxUint64),
		`{"N":"255"}`:                  uint8(255),
		`{"BOOL":true}`:                true,
		`{"NULL":true}`:                nil,
		`{"B":"AP9//w=="}`:             []byte{0, 0xff, 0x7f, 0xff},
		`{"B":"AP9//w==" }`:            of("b"),
		`{"BS":["AP8="]}`:              of("bs"),
		`{"SS":["a","b"]}`:             dynamo.Strings{"a", "b"},
		`{"L":[{"NULL":true}]}`:        of("l"),
		`{"M":{"pk":{"S":"k"}}}`:       pk("k"),
		`{"N":"1234567890123456789012345678901234567.8"}`:        json.Number("1234567890123456789012345678901234567.8"),
		`{"NS":["123456789012345678901234567890.12345678","1"]}`: of("ns"),
	} {
		w := &wire{t: t}
		if err := w.store(Options{}).Write(t.Context(), dynamo.Update("t", pk("k"), "SET a = :v").Value(":v", v)); err != nil {
			t.Errorf("%T %v: %v", v, v, err)
			continue
		}
		var m any
		if err := json.Unmarshal([]byte(want), &m); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(m, w.request(0)["ExpressionAttributeValues"].(map[string]any)[":v"]); diff != "" {
			t.Errorf("%T %v: %s", v, v, diff)
		}
	}
	type text string
	for want, v := range map[string]any{
		"value :v: no attribute is made of a float64": 1.5,
		"no attribute is made of a dynamodb.text":     text("x"),
		"no attribute is made of a time.Duration":     time.Second,
		"no attribute is made of a []string":          []string{"x"},
		`"1x" is not the decimal form`:                json.Number("1x"),
		`"" is not the decimal form`:                  json.Number(""),
		`no number that a table holds`:                json.Number("123456789012345678901234567890123456789"),
		"the zero Value":                              item.Value{},
		"the Item is absent":                          sluice.Item{},
	} {
		w := &wire{t: t}
		err := w.store(Options{}).Write(t.Context(), dynamo.Update("t", pk("k"), "SET a = :v").Value(":v", v))
		if !sluice.IsPermanent(err) || !strings.Contains(err.Error(), want) || len(w.calls) > 0 {
			t.Errorf("%T: %v, want %q", v, err, want)
		}
	}
}

func TestOpsThatAreRefused(t *testing.T) {
	for want, op := range map[string]dynamo.Op{
		"no table is named":       dynamo.Put("", pk("k")),
		"there is no item to put": dynamo.Put("t", sluice.Item{}),
		"there is no key":         dynamo.Delete("t", item.Of()),
		"OpKind 0 is none":        {Table: "t"},
		"a Check":                 dynamo.Check("t", pk("k"), ""),
	} {
		s := (&wire{t: t}).store(Options{})
		for call, err := range map[string]error{"Write": s.Write(t.Context(), op), "Transact": s.Transact(t.Context(), op)} {
			if !sluice.IsPermanent(err) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", call, err, want)
			}
		}
	}
}

const found = `{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException","message":"The conditional request failed","Item":{"pk":{"S":"k"},"n":{"N":"1.0"}}}`

func TestWrite(t *testing.T) {
	for call, op := range map[string]dynamo.Op{
		"PutItem":    dynamo.Put("t", pk("k")).If("#a = :a").Name("#a", "a").Value(":a", 1),
		"UpdateItem": dynamo.Update("t", pk("k"), "SET #a = :a").If("#a = :a").Name("#a", "a").Value(":a", 1),
		"DeleteItem": dynamo.Delete("t", pk("k")).If("#a = :a").Name("#a", "a").Value(":a", 1),
	} {
		w := &wire{t: t}
		if err := w.store(Options{}).Write(t.Context(), op); err != nil || len(w.calls) != 1 || w.calls[0] != call {
			t.Errorf("%v: %v", w.calls, err)
		}
		r := w.request(0)
		if r["TableName"] != "t" || r["ConditionExpression"] != "#a = :a" || r["ReturnValuesOnConditionCheckFailure"] != "ALL_OLD" ||
			cmp.Diff(r["ExpressionAttributeNames"], map[string]any{"#a": "a"}) != "" {
			t.Errorf("%s: %v", call, r)
		}
		w = &wire{t: t, answer: func(int) (int, string) { return 400, found }}
		err := w.store(Options{}).Write(t.Context(), op)
		c, ok := err.(*dynamo.ConditionError) //nolint:errorlint // it is to be just that
		if !ok || len(w.calls) != 1 || cmp.Diff(c.Failed, []int{0})+cmp.Diff(c.Tables, []string{"t"}) != "" || !c.Items[0].Equal(item.Of(item.String("pk", "k"), item.Number("n", "1"))) {
			t.Errorf("%s: %v after %v", call, err, w.calls)
		}
	}
	if err := (&wire{t: t}).store(Options{}).Write(t.Context(), dynamo.Check("t", pk("k"), "a = b")); !sluice.IsPermanent(err) {
		t.Error(err)
	}
}

// After a lost answer, the found item may be the written one.
func TestWriteAfterALostAnswer(t *testing.T) {
	const gone = `{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException"}`
	own := item.Of(item.String("pk", "k"), item.Number("n", "1"))
	for name, c := range map[string]struct {
		op       dynamo.Op
		lost     bool
		found    string
		unharmed bool
	}{
		"a Put finds itself":            {dynamo.Put("t", own).If("a = b"), true, found, true},
		"a Put finds another":           {dynamo.Put("t", pk("k")).If("a = b"), true, found, false},
		"a Put finds itself at once":    {dynamo.Put("t", own).If("a = b"), false, found, false},
		"a Delete finds nothing":        {dynamo.Delete("t", pk("k")).If("a = b"), true, gone, true},
		"a Delete finds something":      {dynamo.Delete("t", pk("k")).If("a = b"), true, found, false},
		"an Update cannot know":         {dynamo.Update("t", pk("k"), "SET n = :n").Value(":n", 1).If("a = b"), true, found, false},
		"a Delete finds nothing at all": {dynamo.Delete("t", pk("k")).If("a = b"), false, gone, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := &wire{t: t, answer: func(n int) (int, string) {
				if n == 1 && c.lost {
					return 0, ""
				}
				return 400, c.found
			}}
			err := w.store(Options{}).Write(t.Context(), c.op)
			if c.unharmed && err != nil || !c.unharmed && !dynamo.IsCondition(err) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

func cancel(codes ...string) string {
	reasons := make([]string, len(codes))
	for i, c := range codes {
		reasons[i] = fmt.Sprintf(`{"Code":%q}`, c)
		if c == "ConditionalCheckFailed" {
			reasons[i] = fmt.Sprintf(`{"Code":%q,"Item":{"pk":{"S":"%d"}}}`, c, i)
		}
	}
	return `{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","CancellationReasons":[` + strings.Join(reasons, ",") + `]}`
}

func TestTransact(t *testing.T) {
	const conflict, unmet, none = "TransactionConflict", "ConditionalCheckFailed", "None"
	type answer struct {
		status int
		body   string
	}
	done := answer{200, "{}"}
	for name, c := range map[string]struct {
		answers   []answer // the last one again and again
		calls     int
		failed    []int
		permanent bool
		err       bool
	}{
		"done":                          {[]answer{done}, 1, nil, false, false},
		"conflict":                      {[]answer{{400, cancel(none, conflict, none)}, {400, cancel(conflict, none, none)}, done}, 3, nil, false, false},
		"throttled":                     {[]answer{{400, refusal("ThrottlingException")}, {400, cancel("ThrottlingError", none, none)}, done}, 3, nil, false, false},
		"lost":                          {[]answer{{}, {500, refusal("InternalServerError")}, done}, 3, nil, false, false},
		"in progress":                   {[]answer{{}, {400, refusal("TransactionInProgressException")}, done}, 3, nil, false, false},
		"conditions":                    {[]answer{{400, cancel(unmet, none, unmet)}}, 1, []int{0, 2}, false, true},
		"a condition after a conflict":  {[]answer{{400, cancel(unmet, conflict, none)}, {400, cancel(unmet, unmet, none)}}, 2, []int{0, 1}, false, true},
		"a condition, and conflicts on": {[]answer{{400, cancel(unmet, conflict, none)}}, 4, []int{0}, false, true},
		"conflicts on":                  {[]answer{{400, cancel(none, conflict, none)}}, 4, nil, false, true},
		"invalid":                       {[]answer{{400, cancel(unmet, "ValidationError", conflict)}}, 1, nil, true, true},
		"invalid as a whole":            {[]answer{{400, refusal("ValidationException")}}, 1, nil, true, true},
		"no table":                      {[]answer{{400, refusal("ResourceNotFoundException")}}, 1, nil, false, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := &wire{t: t, answer: func(n int) (int, string) {
				a := c.answers[min(n, len(c.answers))-1]
				return a.status, a.body
			}}
			err := w.store(Options{Attempts: 4}).Transact(t.Context(), dynamo.Put("a", pk("0")).If("x"), dynamo.Update("b", pk("1"), "SET a = :a").Value(":a", 1).Value(":b", 2).Value(":c", 3), dynamo.Check("c", pk("2"), "y"))
			if (err != nil) != c.err || sluice.IsPermanent(err) != c.permanent || len(w.calls) != c.calls || dynamo.IsCondition(err) != (c.failed != nil) {
				t.Errorf("%s: %v after %v", name, err, w.calls)
			}
			if ce, ok := err.(*dynamo.ConditionError); ok { //nolint:errorlint // it is to be just that
				for k, i := range c.failed {
					if len(ce.Failed) != len(c.failed) || ce.Failed[k] != i || ce.Tables[k] != []string{"a", "b", "c"}[i] || !ce.Items[k].Equal(pk("%d", i)) {
						t.Errorf("%s: %+v", name, ce)
					}
				}
			}
			// The token stands for a request that is the same to the byte.
			for _, body := range w.bodies[1:] {
				if body != w.bodies[0] || !strings.Contains(body, `"ClientRequestToken":"`) {
					t.Errorf("%s: repeated as another request", name)
				}
			}
		})
	}
	w := &wire{t: t}
	s := w.store(Options{})
	if err := s.Transact(t.Context()); err != nil || len(w.calls) > 0 {
		t.Error("nothing is no transaction:", err)
	}
	if err := s.Transact(t.Context(), make([]dynamo.Op, 101)...); !sluice.IsPermanent(err) || len(w.calls) > 0 {
		t.Error(err)
	}
	for range 2 {
		if err := s.Transact(t.Context(), dynamo.Put("a", pk("0"))); err != nil {
			t.Error(err)
		}
	}
	if w.request(0)["ClientRequestToken"] == w.request(1)["ClientRequestToken"] {
		t.Error("two calls share a token")
	}
}

// Writes use units of the budget, and the metric counts them.
func TestWritesAreConsumed(t *testing.T) {
	var counts tally.Tally
	w := &wire{t: t}
	s := w.store(Options{Budget: map[string]float64{"t": 1000}, Metrics: &counts})
	w.answer = func(int) (int, string) { return 200, `{"ConsumedCapacity":{"TableName":"t","CapacityUnits":3}}` }
	if err := s.Write(t.Context(), dynamo.Put("t", pk("k"))); err != nil {
		t.Error(err)
	}
	w.answer = func(int) (int, string) {
		return 200, `{"ConsumedCapacity":[{"TableName":"t","CapacityUnits":4},{"TableName":"u","CapacityUnits":2}]}`
	}
	if err := s.Transact(t.Context(), dynamo.Put("t", pk("k")), dynamo.Put("u", pk("k"))); err != nil {
		t.Error(err)
	}
	if _, err := s.Once(t.Context(), dynamo.Unit{Marker: dynamo.NewMarker("u", "m", time.Now()), Adds: []dynamo.Add{{Table: "t", Key: pk("k"), By: map[string]int64{"n": 1}}}}); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(map[string]int{"t": 11, "u": 4}, counts.By("sluice_write_units_total")); diff != "" {
		t.Error(diff)
	}
	for i := range w.calls {
		if w.request(i)["ReturnConsumedCapacity"] != "TOTAL" {
			t.Errorf("%s does not ask what it consumes", w.calls[i])
		}
	}
}
