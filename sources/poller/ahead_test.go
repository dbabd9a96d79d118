package poller

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/smithy-go"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/benchdata"
	"github.com/sluicehq/sluice/internal/streamsapi"
	"github.com/sluicehq/sluice/sources/poller/internal/quota"
	"github.com/sluicehq/sluice/state"
)

// paged answers GetRecords calls after a while with one page for each
// iterator: "1" leads to "2", and so on.
type paged struct {
	service
	takes time.Duration
	page  func(n int) []byte // after those scripted
	err   map[int]error      // of the first call with an iterator

	mu    sync.Mutex
	calls []string
	ended int
}

func (p *paged) GetRecords(ctx context.Context, iterator string, _ int32) ([]byte, error) {
	var n int
	fmt.Sscan(iterator, &n)
	p.mu.Lock()
	p.calls = append(p.calls, iterator)
	err := p.err[n]
	delete(p.err, n)
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.ended++
	}()
	if e := sleep(ctx, p.takes); e != nil {
		return nil, e
	}
	if err != nil {
		return nil, err
	}
	return p.page(n), nil
}

func (p *paged) seen() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.calls, " ")
}

// onePage is the nth page, whose one record has sequence number n; it is full
// when it has size bytes.
func onePage(n, size int) []byte {
	created := time.Now().Add(-time.Hour).Unix()
	return fmt.Appendf(nil, `{"Records":[{"eventID":"e","eventName":"INSERT","eventVersion":"1.1","eventSource":"aws:dynamodb","awsRegion":"r",`+
		`"dynamodb":{"ApproximateCreationDateTime":%d,"Keys":{"id":{"S":"k"}},"NewImage":{"id":{"S":"k"},"text":{"S":"%s"}},`+
		`"SequenceNumber":"%s%d","SizeBytes":10,"StreamViewType":"NEW_IMAGE"}}],"NextShardIterator":"%d"}`,
		created, strings.Repeat("x", max(0, size-400)), stubBase, n, n+1)
}

func full(n int) []byte { return onePage(n, fullBytes+1000) }

func pagedReader(p *paged) *reader {
	return pooledReader(p, quota.NewPool(quota.LeastMemory(1), 1, 1000))
}

func pooledReader(p *paged, q *quota.Pool) *reader {
	return &reader{
		api: p, iterator: "1", timeout: 10 * time.Second, pace: newPace(200*time.Millisecond, time.Second),
		quota: q.Share("orders"), waits: func(bool) {},
		polled: func(Poll, kind) {}, failed: func(string, error, kind, time.Duration) {},
	}
}

// mustNext reads the next page and fails unless its record is number n.
func mustNext(t *testing.T, r *reader, n int) page {
	t.Helper()
	pg, err := r.next(t.Context())
	if err != nil {
		t.Fatalf("page %d: %v", n, err)
	}
	if want := fmt.Sprint(stubBase, n); len(pg.records) != 1 || string(pg.records[0].Sequence) != want || pg.records[0].Err() != nil {
		t.Fatalf("page %d has %d records, the first is %v", n, len(pg.records), pg.records)
	}
	r.quota.Free(pg.bytes) // as the flow does
	return pg
}

// end drops the call that was made ahead; nothing of the quota is left then.
func end(t *testing.T, r *reader) {
	t.Helper()
	r.drop()
	if n := r.quota.Pinned(); n != 0 {
		t.Errorf("%d bytes of the quota are not given back", n)
	}
}

// The page behind a full one is asked for while that is worked on, once.
func TestAheadOfAFullPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &paged{takes: time.Second, page: full}
		r := pagedReader(p)
		defer end(t, r)
		mustNext(t, r, 1)
		synctest.Wait()
		want(t, "calls after the first page", p.seen(), "1 2")
		time.Sleep(5 * time.Second) // the flow's window is full
		want(t, "calls while nobody takes the second", p.seen(), "1 2")
		r.polled = func(p Poll, _ kind) {
			if p.Took != time.Second {
				t.Errorf("the poll took %v, want the second that the service did", p.Took)
			}
		}
		taken := time.Now()
		mustNext(t, r, 2)
		if waited := time.Since(taken); waited != 0 {
			t.Errorf("the second page came %v late", waited)
		}
		synctest.Wait()
		want(t, "calls after the second", p.seen(), "1 2 3")
	})
}

// What was written after the call was made may not be in its answer.
func TestAheadSawToItsCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &paged{takes: time.Second, page: func(n int) []byte {
			if n == 1 {
				return full(n)
			}
			return fmt.Appendf(nil, `{"Records":[],"NextShardIterator":"%d"}`, n+1)
		}}
		r := pagedReader(p)
		defer end(t, r)
		mustNext(t, r, 1)
		called := time.Now()
		time.Sleep(time.Minute)
		pg, err := r.next(t.Context())
		if err != nil || !pg.seenTo.Equal(called) {
			t.Errorf("everything up to %v was seen, %v; want up to the call at %v", pg.seenTo, err, called)
		}
		r.quota.Free(pg.bytes)
	})
}

// A page that is not full is not followed at once; nor does a shard that the
// service throttles get calls before their time.
func TestNotAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &paged{page: func(n int) []byte { return onePage(n, 1000) }}
		r := pagedReader(p)
		defer end(t, r)
		mustNext(t, r, 1)
		synctest.Wait()
		want(t, "calls after a page that is not full", p.seen(), "1")

		p.page = full
		p.err = map[int]error{2: &smithy.GenericAPIError{Code: "ThrottlingException"}}
		mustNext(t, r, 2)
		synctest.Wait()
		want(t, "calls after throttling", p.seen(), "1 2 2")
		for n := 3; r.pace.spacing > 0; n++ {
			mustNext(t, r, n)
			synctest.Wait()
			if got := len(strings.Fields(p.seen())); r.pace.spacing > 0 && got != n+1 {
				t.Fatalf("%d calls after page %d, want %d", got, n, n+1)
			}
		}
	})
}

// What comes ahead counts only behind the page that it follows: one that
// cannot be read is asked for again, and the call ahead is given up.
func TestAheadOfADamagedPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		damaged := true
		p := &paged{takes: time.Second, page: func(n int) []byte {
			b := full(n)
			if n == 2 && damaged {
				damaged = false
				b[1] = '!'
			}
			return b
		}}
		r := pagedReader(p)
		defer end(t, r)
		r.failed = func(string, error, kind, time.Duration) {
			if n := r.quota.Pinned(); n != 0 {
				t.Errorf("%d bytes of the quota are kept until it is tried again", n)
			}
		}
		for n := 1; n <= 4; n++ {
			mustNext(t, r, n)
		}
		synctest.Wait()
		want(t, "calls", p.seen(), "1 2 3 2 3 4 5")

		r.iterator = "7" // a new one was asked for
		mustNext(t, r, 7)
		synctest.Wait()
		want(t, "calls after a new iterator", p.seen(), "1 2 3 2 3 4 5 7 8")
	})
}

// An error ahead is met where the call would have been made.
func TestAheadFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &paged{page: full, err: map[int]error{2: errors.New("connection reset"), 3: &smithy.GenericAPIError{Code: "InternalServerError"}}}
		r := pagedReader(p)
		defer end(t, r)
		failures := 0
		r.failed = func(string, error, kind, time.Duration) { failures++ }
		mustNext(t, r, 1)
		synctest.Wait()
		if failures != 0 {
			t.Error("the failure was told before the page was handed over")
		}
		for n := 2; n <= 4; n++ {
			mustNext(t, r, n)
		}
		synctest.Wait()
		want(t, "calls", p.seen(), "1 2 2 3 3 4 5")
		if failures != 2 {
			t.Errorf("%d failures were told, want 2", failures)
		}
	})
}

// A call ahead ends with the reader.
func TestAheadEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &paged{takes: time.Second, page: full}
		r := pagedReader(p)
		mustNext(t, r, 1)
		synctest.Wait()
		began := time.Now()
		end(t, r)
		if took := time.Since(began); p.ended != 2 || took != 0 {
			t.Errorf("%d of 2 calls have ended after %v", p.ended, took)
		}
		end(t, r)
	})
}

// A page that the flow has is no page that waits: what stands still leaves room
// for one ahead only until the shard has its part.
func TestAheadWithinTheQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, q := &paged{page: full}, quota.NewPool(quota.LeastMemory(1), 1, 1000)
		r := pooledReader(p, q)
		defer end(t, r)
		others := q.Share("orders")
		n, _ := others.AdmitAhead()
		for range 2 {
			others.AdmitAhead()
		}
		mustNext(t, r, 1)
		synctest.Wait()
		want(t, "calls without room for a page ahead", p.seen(), "1")
		others.Free(others.Pinned())
		mustNext(t, r, 2)
		synctest.Wait()
		want(t, "calls with room", p.seen(), "1 2 3")
		if got := r.quota.Pinned(); got != n {
			t.Errorf("%d bytes are reserved for the page ahead, want %d", got, n)
		}

		ctx, cancel := context.WithCancel(t.Context())
		var waiting sync.WaitGroup
		for range 100 { // more than may call at once
			waiting.Go(func() {
				other := q.Share("orders")
				_ = other.Admit(ctx, false, func(bool) {})
				other.Dismiss()
			})
		}
		synctest.Wait()
		mustNext(t, r, 3)
		synctest.Wait()
		want(t, "calls while others wait for their turn", p.seen(), "1 2 3")
		cancel()
		waiting.Wait()
		pass(time.Second)
		mustNext(t, r, 4)
		synctest.Wait()
		want(t, "calls when nobody waits", p.seen(), "1 2 3 4 5")
	})
}

// Run returns when no call is under way any more.
func TestAheadEndsWithRun(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStub()
		a := &stubShard{id: "a"}
		s.table("orders", a)
		for range 4 {
			s.put(a, strings.Repeat("k", fullBytes/2)) // in Keys and NewImage
		}
		polls := 0
		s.fail = func(op, _ string) string {
			if op == "GetRecords" {
				polls++
			}
			if polls == 5 { // the start's trial; being handled; being submitted; waiting
				return "linger"
			}
			return ""
		}
		o := testOptions(state.NewMemory(), "orders")
		o.Limit = 1
		o.Flow.Window = 1
		release := make(chan struct{})
		r := start(t, s, func(context.Context, *sluice.Record) error { <-release; return nil }, o)
		if polls != 5 || s.open.Load() != 1 {
			t.Fatalf("%d polls, %d calls under way, want the one behind the page that waits", polls, s.open.Load())
		}
		r.stop()
		synctest.Wait()
		close(release)
		if err := <-r.done; err != nil {
			t.Error(err)
		}
		if n := s.open.Load(); n != 0 {
			t.Errorf("%d calls are still under way", n)
		}
	})
}

// A shard's end, and whatever is in doubt, is not followed.
func TestNextIterator(t *testing.T) {
	long := strings.Repeat("x", 8<<10)
	for _, tt := range []struct{ body, want string }{
		{`{"Records":[],"NextShardIterator":"arn|1"}`, "arn|1"},
		{`{"NextShardIterator":"arn|1","Records":[]}`, "arn|1"},
		{`{"NextShardIterator":"arn|1","Records":["` + long + `"]}`, "arn|1"},
		{`{"Records":["` + long + `"],"NextShardIterator":"arn|1"}`, "arn|1"},
		{`{"Records":[{"NextShardIterator":{"S":"\"NextShardIterator\":\"2\""}}],"NextShardIterator":"3"}`, "3"},
		{`{"Records":[{"NextShardIterator":{"S":"\"NextShardIterator\":\"2\""}}]}`, ""},
		{`{"Records":[]}`, ""},
		{`{"Records":[],"NextShardIterator":null}`, ""},
		{`{"Records":[],"NextShardIterator":""}`, ""},
		{`{"Records":[],"NextShardIterator":"a\/b"}`, ""},
		{`{"Records":[],"NextShardIterator":"cut`, ""},
		{`{"NextShardIterator":"` + long + `"}`, ""},
		{``, ""},
	} {
		if got := nextIterator([]byte(tt.body)); got != tt.want {
			t.Errorf("%.60s: %q, want %q", tt.body, got, tt.want)
		}
	}
}

// BenchmarkBacklog reads full pages of a service that takes 5 ms for each. What
// counts is for how long the service has nothing to do: idle-ns/op is the
// median of the times from an answer to the next call.
func BenchmarkBacklog(b *testing.B) {
	const records = 550 // a full page
	body := benchdata.GetRecords(benchdata.Modify, records)
	var idle []time.Duration
	answered := time.Now()
	r := pagedReader(&paged{page: func(int) []byte {
		idle = append(idle, time.Since(answered))
		time.Sleep(5 * time.Millisecond)
		page := slices.Clone(body)
		answered = time.Now()
		return page
	}})
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if pg, err := r.next(b.Context()); err != nil || len(pg.records) != records {
			b.Fatal(len(pg.records), err)
		} else {
			r.quota.Free(pg.bytes)
		}
	}
	r.drop()
	slices.Sort(idle)
	b.ReportMetric(float64(idle[len(idle)/2]), "idle-ns/op")
}

// BenchmarkCall is a request of an idle shard: the SDK's share, and a new stack.
func BenchmarkCall(b *testing.B) {
	cfg := newStub().config()
	cfg.HTTPClient = answering(`{"Records":[],"NextShardIterator":"next"}`)
	r := &reader{api: streamsapi.New(cfg), timeout: time.Minute, limit: 1000}
	for b.Loop() {
		c := r.begin(b.Context(), "iterator")
		<-c.done
		if c.cancel(); c.err != nil {
			b.Fatal(c.err)
		}
	}
}

// answering answers each request with this body.
type answering string

func (a answering) Do(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Request: r, Body: io.NopCloser(strings.NewReader(string(a))), ContentLength: int64(len(a))}, nil
}
