package reread

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/internal/wire"
	"github.com/sluicehq/sluice/streamtest"
)

// orders is a stream of five records, in a bubble.
func orders(t *testing.T) (*streamtest.Service, *streamtest.Table, []sluice.Sequence, *Reader) {
	svc := streamtest.NewService(t)
	svc.SetLimits(streamtest.Limits{ReadsPerShard: 1000})
	table := svc.CreateTable("orders", streamtest.TableOptions{PartitionKey: "id"})
	var seqs []sluice.Sequence
	for i := range 5 {
		seqs = append(seqs, table.Put(map[string]any{"id": fmt.Sprint("item ", i)}))
	}
	return svc, table, seqs, New(svc.Config())
}

// calls counts those of an operation.
func calls(svc *streamtest.Service, op string) (n int) {
	for _, c := range svc.Calls() {
		if c.Op == op {
			n++
		}
	}
	return n
}

// after is a sequence number between s and the next record's.
func after(s sluice.Sequence) sluice.Sequence {
	return s[:len(s)-1] + sluice.Sequence(s[len(s)-1]+1)
}

// A range is handed over whole and in order, and nothing beside it, however its
// records lie on pages.
func TestRange(t *testing.T) {
	for name, tt := range map[string]struct {
		faults []streamtest.Fault
		last   func([]sluice.Sequence) sluice.Sequence
	}{
		"one page":               {nil, func(s []sluice.Sequence) sluice.Sequence { return s[3] }},
		"a page each":            {[]streamtest.Fault{{Records: 1}}, func(s []sluice.Sequence) sluice.Sequence { return s[3] }},
		"empty pages first":      {[]streamtest.Fault{{Empty: true, Times: mostEmpty}}, func(s []sluice.Sequence) sluice.Sequence { return s[3] }},
		"empty pages in between": {[]streamtest.Fault{{Empty: true, After: 1, Times: mostEmpty - 1}, {Records: 1, Times: 2}, {Empty: true, Times: mostEmpty - 1}}, func(s []sluice.Sequence) sluice.Sequence { return s[3] }},
		"it ends between two":    {nil, func(s []sluice.Sequence) sluice.Sequence { return after(s[3]) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				svc, table, seqs, r := orders(t)
				for _, f := range tt.faults {
					svc.Fail(f)
				}
				shard := table.Shards()[0].ID
				var got []sluice.Sequence
				err := r.Records(t.Context(), Range{table.StreamARN(), shard, seqs[1], tt.last(seqs)}, func(recs []sluice.Record) error {
					for _, rec := range recs {
						got = append(got, rec.Sequence)
						if rec.StreamARN != table.StreamARN() || rec.ShardID != shard || rec.Table != "orders" || rec.Origin != sluice.Replayed {
							t.Errorf("record of %s, shard %s, table %s, %v", rec.StreamARN, rec.ShardID, rec.Table, rec.Origin)
						}
					}
					return nil
				})
				if err != nil || !slices.Equal(got, seqs[1:4]) {
					t.Errorf("%v, %v, want %v", got, err, seqs[1:4])
				}
			})
		})
	}
}

// An incomplete range is reported as such, also if the stream gives only empty pages.
func TestRangeWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc, table, seqs, r := orders(t)
		shard := table.Shards()[0].ID
		rng := Range{table.StreamARN(), shard, seqs[3], after(seqs[4])}
		n := 0
		count := func(recs []sluice.Record) error { n += len(recs); return nil }
		if err := r.Records(t.Context(), rng, count); !errors.Is(err, ErrTrimmed) || n != 2 || !strings.HasPrefix(err.Error(), fmt.Sprintf("records %s to %s of shard %s of %s: ", rng.First, rng.Last, shard, rng.StreamARN)) {
			t.Errorf("an open shard: %d records, %v", n, err)
		}
		table.Roll(shard)
		n = 0
		begun := calls(svc, "GetRecords")
		if err := r.Records(t.Context(), rng, count); !errors.Is(err, ErrTrimmed) || n != 2 || calls(svc, "GetRecords")-begun > 2 {
			t.Errorf("a closed shard: %d records, %v, %d calls", n, err, calls(svc, "GetRecords")-begun)
		}
		for _, bad := range []Range{{table.StreamARN(), shard, "", seqs[1]}, {table.StreamARN(), shard, seqs[1], "99999999999999999999999999999999x"}} {
			if err := r.Records(t.Context(), bad, count); err == nil || !strings.Contains(err.Error(), "sequence numbers are none") {
				t.Errorf("%v: %v", bad, err)
			}
		}
		full := errors.New("disk full")
		if err := r.Records(t.Context(), Range{table.StreamARN(), shard, seqs[0], seqs[4]}, func([]sluice.Record) error { return full }); !errors.Is(err, full) {
			t.Errorf("who takes the records fails: %v", err)
		}
	})
}

// moved asks the stream for an iterator at another sequence number.
type moved struct {
	http.RoundTripper
	from, to sluice.Sequence
}

func (m moved) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	text := strings.Replace(string(body), string(m.from), string(m.to), 1)
	req = req.Clone(req.Context())
	req.Body, req.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
	return m.RoundTripper.RoundTrip(req)
}

// A range whose beginning is missing is not handed over without it.
func TestRangeWithoutBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc, table, seqs, _ := orders(t)
		cfg := svc.Config()
		cfg.HTTPClient = &http.Client{Transport: moved{cfg.HTTPClient.(*http.Client).Transport, seqs[0], seqs[1]}}
		err := New(cfg).Records(t.Context(), Range{table.StreamARN(), table.Shards()[0].ID, seqs[0], seqs[3]}, func(recs []sluice.Record) error {
			t.Errorf("%d records", len(recs))
			return nil
		})
		if !errors.Is(err, ErrTrimmed) || !strings.Contains(err.Error(), "it begins with "+string(seqs[1])) {
			t.Error(err)
		}
	})
}

// A record is looked for only in shards that may hold it.
func TestRecordOfAnyShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := streamtest.NewService(t)
		table := svc.CreateTable("orders", streamtest.TableOptions{PartitionKey: "id"})
		r := New(svc.Config())
		first := table.Put(map[string]any{"id": "a"})
		parent := table.Shards()[0].ID
		table.Split(parent)
		second := table.Put(map[string]any{"id": "a", "n": 2})
		for _, at := range []sluice.Sequence{first, second} {
			rec, err := r.Record(t.Context(), table.StreamARN(), "", at, "")
			if err != nil || rec.Sequence != at || (rec.ShardID == parent) != (at == first) {
				t.Errorf("%s: %+v, %v", at, rec, err)
			}
		}
		for _, c := range svc.Calls() {
			if c.Op == "GetShardIterator" && (c.Shard == parent) != (c.Sequence == first) {
				t.Errorf("a shard was asked that cannot hold it: %+v", c)
			}
		}
		listed := calls(svc, "DescribeStream")
		rec, err := r.Record(t.Context(), table.StreamARN(), parent, first, "")
		if err != nil || rec.Sequence != first || calls(svc, "DescribeStream") != listed {
			t.Fatalf("with its shard: %+v, %v", rec, err)
		}
		if got, err := r.Record(t.Context(), table.StreamARN(), "", first, rec.EventID); err != nil || got.EventID != rec.EventID {
			t.Errorf("by its event: %+v, %v", got, err)
		}
		if got, err := r.Record(t.Context(), table.StreamARN(), "", first, "another"); !errors.Is(err, ErrTrimmed) {
			t.Errorf("another event: %+v, %v", got, err)
		}
		if got, err := r.Record(t.Context(), table.StreamARN()+"x", "", first, ""); !errors.Is(err, ErrTrimmed) || !strings.Contains(err.Error(), "shards of ") {
			t.Errorf("another stream: %+v, %v", got, err)
		}

		// That a shard cannot be asked does not say that the record is gone.
		remove := svc.Fail(streamtest.Fault{Op: "GetShardIterator", Error: "AccessDeniedException"})
		if got, err := r.Record(t.Context(), table.StreamARN(), "", first, ""); err == nil || errors.Is(err, ErrTrimmed) || !strings.Contains(err.Error(), "AccessDenied") {
			t.Errorf("refused: %+v, %v", got, err)
		}
		remove()
		remove = svc.Fail(streamtest.Fault{Op: "GetShardIterator", Cut: true})
		if got, err := r.Record(t.Context(), table.StreamARN(), "", first, ""); err == nil || errors.Is(err, ErrTrimmed) {
			t.Errorf("cut off: %+v, %v", got, err)
		}
		remove()
		remove = svc.Fail(streamtest.Fault{Op: "GetShardIterator", Error: "ValidationException"})
		if got, err := r.Record(t.Context(), table.StreamARN(), "", first, ""); !errors.Is(err, ErrTrimmed) {
			t.Errorf("of no shard: %+v, %v", got, err)
		}
		remove()
	})
}

// Temporary errors are retried, six times in all. Other errors are not.
func TestAgain(t *testing.T) {
	for _, tt := range []struct {
		fault streamtest.Fault
		times int // of the call until the answer is good; 0: it never is
		want  string
	}{
		{streamtest.Fault{Error: "LimitExceededException", Times: 5}, 6, ""},
		{streamtest.Fault{Error: "LimitExceededException"}, 6, "LimitExceeded"},
		{streamtest.Fault{Error: "InternalServerError", Times: 1}, 2, ""},
		{streamtest.Fault{Status: 502, Times: 1}, 2, ""},
		{streamtest.Fault{Cut: true, Times: 1}, 2, ""},
		{streamtest.Fault{Hang: true, Times: 1}, 2, ""},
		{streamtest.Fault{Error: "AccessDeniedException"}, 1, "AccessDenied"},
		{streamtest.Fault{Error: "ExpiredIteratorException"}, 1, "read them again"},
	} {
		t.Run(fmt.Sprintf("%+v", tt.fault), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				svc, table, seqs, r := orders(t)
				tt.fault.Op = "GetRecords"
				svc.Fail(tt.fault)
				begin, n := time.Now(), 0
				err := r.Records(t.Context(), Range{table.StreamARN(), table.Shards()[0].ID, seqs[0], seqs[4]}, func(recs []sluice.Record) error { n += len(recs); return nil })
				if tt.want == "" && (err != nil || n != 5) || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || errors.Is(err, ErrTrimmed)) {
					t.Errorf("%d records, %v", n, err)
				}
				if got := calls(svc, "GetRecords"); got != tt.times {
					t.Errorf("%d calls, want %d", got, tt.times)
				}
				if took := time.Since(begin); tt.times == 6 && took != 31*200*time.Millisecond {
					t.Errorf("it waited %v in all", took)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) { // who does not wait any more
		svc, table, seqs, r := orders(t)
		svc.Fail(streamtest.Fault{Op: "GetRecords", Error: "LimitExceededException"})
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		begin := time.Now()
		err := r.Records(ctx, Range{table.StreamARN(), table.Shards()[0].ID, seqs[0], seqs[4]}, func([]sluice.Record) error { return nil })
		if took := time.Since(begin); err == nil || errors.Is(err, ErrTrimmed) || took != 100*time.Millisecond || calls(svc, "GetRecords") != 1 {
			t.Errorf("%v after %v", err, took)
		}
	})
}

// items answers DescribeTable and GetItem for one item of the table orders.
type items struct {
	t    *testing.T
	fail map[string]string // error by operation
	none bool              // there is no item
}

func (s items) RoundTrip(req *http.Request) (*http.Response, error) {
	_, op, _ := strings.Cut(req.Header.Get("X-Amz-Target"), ".")
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	switch {
	case s.fail[op] != "":
		w.WriteHeader(400)
		fmt.Fprintf(w, `{"__type":%q,"message":"no"}`, s.fail[op])
	case op == "DescribeTable" && strings.Contains(string(body), `"orders"`):
		io.WriteString(w, `{"Table":{"TableName":"orders","TableId":"id-1","KeySchema":[{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}]}}`)
	case op == "GetItem":
		var in struct {
			TableName      string
			Key            map[string]map[string]string
			ConsistentRead bool
		}
		if err := json.Unmarshal(body, &in); err != nil || in.TableName != "orders" || !in.ConsistentRead || fmt.Sprint(in.Key) != "map[pk:map[S:a] sk:map[N:1]]" {
			s.t.Errorf("GetItem %s, %v", body, err)
		}
		if s.none {
			io.WriteString(w, `{}`)
		} else {
			io.WriteString(w, `{"Item":{"pk":{"S":"a"},"sk":{"N":"1"},"v":{"S":"now"}}}`)
		}
	default:
		s.t.Errorf("%s %s", op, body)
	}
	return w.Result(), nil
}

// An item is read as it is now, as a backfill would; that there is none is no
// failure to read it.
func TestItem(t *testing.T) {
	const arn = "arn:aws:dynamodb:us-east-1:123456789012:table/orders"
	keys := recordtest.New(recordtest.Spec{Keys: `{"pk":{"S":"a"},"sk":{"N":"1"}}`}).Keys
	read := func(s items, arn string, keys sluice.Item) (*sluice.Record, error) {
		s.t = t
		cfg := streamtest.NewService(t).Config()
		cfg.HTTPClient = &http.Client{Transport: s}
		return New(cfg).Item(t.Context(), arn, keys)
	}
	for _, arn := range []string{arn, arn + "/stream/2026-01-01T00:00:00.000"} {
		rec, err := read(items{}, arn, keys)
		if err != nil {
			t.Fatal(err)
		}
		v, _ := rec.New.Lookup("v")
		if rec.EventName != sluice.Snapshot || rec.Table != "orders" || !rec.Keys.Equal(keys) || v.Str() != "now" || rec.Err() != nil {
			t.Errorf("%+v", rec)
		}
		page, err := wire.DecodeScan([]byte(`{"Count":1,"Items":[{"pk":{"S":"a"},"sk":{"N":"1"},"v":{"S":"now"}}]}`),
			wire.ScanSource{TableARN: "arn:aws:dynamodb:us-east-1:123456789012:table/orders", TableID: "id-1", Region: "us-east-1", Keys: []string{"pk", "sk"}})
		if err != nil || rec.EventID != page.Records[0].EventID || rec.StreamARN != page.Records[0].StreamARN || rec.Region != page.Records[0].Region {
			t.Errorf("%+v, and a backfill's record is %+v, %v", rec, page.Records[0], err)
		}
	}
	for _, tt := range []struct {
		name string
		s    items
		arn  string
		keys sluice.Item
		gone bool
		want string
	}{
		{"no item", items{none: true}, arn, keys, true, "item of table orders: there is no such item now"},
		{"no table", items{fail: map[string]string{"DescribeTable": "ResourceNotFoundException"}}, arn, keys, false, "lead to no table of this name (ResourceNotFound"},
		{"no table any more", items{fail: map[string]string{"GetItem": "ResourceNotFoundException"}}, arn, keys, false, "only if the table was deleted"},
		{"no key", items{}, arn, sluice.Item{}, false, "its table or its key is unknown"},
		{"no table's ARN", items{}, "orders", keys, false, "its table or its key is unknown"},
		{"may not describe", items{fail: map[string]string{"DescribeTable": "AccessDeniedException"}}, arn, keys, false, "item of table orders: "},
		{"may not read", items{fail: map[string]string{"GetItem": "AccessDeniedException"}}, arn, keys, false, "AccessDenied"},
	} {
		if rec, err := read(tt.s, tt.arn, tt.keys); err == nil || errors.Is(err, ErrNoItem) != tt.gone || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %+v, %v", tt.name, rec, err)
		}
	}
}

// A record is found with its shard on any page of the listing.
func TestRecordOfManyShards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := streamtest.NewService(t)
		table := svc.CreateTable("orders", streamtest.TableOptions{PartitionKey: "id", Shards: 200})
		r := New(svc.Config())
		for i := range 5 {
			at := table.Put(map[string]any{"id": fmt.Sprint(i)})
			if rec, err := r.Record(t.Context(), table.StreamARN(), "", at, ""); err != nil || rec.Sequence != at {
				t.Errorf("%s: %+v, %v", at, rec, err)
			}
		}
	})
}
