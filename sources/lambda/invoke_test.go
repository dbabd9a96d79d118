package lambda

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/internal/recordtest"
)

var errBroken = errors.New("broken")

// obey does what a record's attribute says.
func obey(_ context.Context, rec *sluice.Record) error {
	switch what := do(rec); what {
	case "", "ok":
		return nil
	case "fail":
		return errBroken
	case "permanent":
		return sluice.Permanent(errBroken)
	case "later":
		return sluice.RetryAfter(time.Hour, errBroken)
	case "skip":
		return sluice.Skip("not mine")
	case "panic":
		panic("handler fell over")
	case "goexit":
		runtime.Goexit()
		return nil
	case "rest":
		return &sluice.Remaining{Rest: obey, Err: errBroken}
	default:
		return fmt.Errorf("unknown %q", what)
	}
}

// The answer holds one identifier, of the lowest unsettled record. It is never
// an empty list while a record is unsettled.
func TestAnswers(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   string // of records 8, 9, 10, … of one item
		want int    // the record named, none when all are settled
	}{
		{"batch of one", "ok", none},
		{"batch of one that fails", "fail", 8},
		{"all succeed", "ok ok ok", none},
		{"first fails", "fail ok ok", 8},
		{"middle fails", "ok fail ok", 9},
		{"last fails", "ok ok fail", 10},
		{"all fail", "fail fail fail", 8},
		{"two fail", "ok fail fail", 9},
		{"skipped is settled", "skip ok skip", none},
		{"permanent without dead letters stops", "ok permanent ok", 9},
		{"to be retried later", "ok later ok", 9},
		{"partly done", "ok rest ok", 9},
		{"panic", "ok panic ok", 9},
		{"goexit", "ok goexit ok", 9},
		{"eight to eleven, as numbers", "ok ok ok fail", 11},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var batch []change
			for i, what := range strings.Fields(tt.do) {
				batch = append(batch, change{seq: 8 + i, do: what})
			}
			want := allDone
			if tt.want != none {
				want = failsFrom(tt.want)
			}
			h := NewHandler(one(obey), Options{Logger: quiet()})
			if got := invoke(t, t.Context(), h, event(batch...)); got != want {
				t.Errorf("answer %s, want %s", got, want)
			}
		})
	}
}

// Once a failure is known, no later record is started, also of other items.
func TestNothingLaterIsStartedAfterAFailure(t *testing.T) {
	var seen recorder
	h := NewHandler(one(func(ctx context.Context, rec *sluice.Record) error {
		seen.add(short(string(rec.Sequence)))
		return obey(ctx, rec)
	}), Options{Concurrency: 1, Logger: quiet()})
	batch := []change{{item: "a", seq: 1}, {item: "b", seq: 2, do: "fail"}, {item: "c", seq: 3}, {item: "b", seq: 4}}
	if got := invoke(t, t.Context(), h, event(batch...)); got != failsFrom(2) {
		t.Errorf("answer %s", got)
	}
	if got := seen.take(); !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("handled %v, want 1 and 2 only", got)
	}
}

// When a record fails, running handlers may finish. Their success does not hide the
// failure, and the failure does not change their results.
func TestRunningRecordsFinishAfterAFailure(t *testing.T) {
	running, failed := make(chan struct{}), make(chan struct{})
	finished := false
	h := NewHandler(one(func(_ context.Context, rec *sluice.Record) error {
		if rec.Sequence == recordtest.Sequence(2) {
			close(running)
			<-failed
			finished = true
			return nil
		}
		<-running
		close(failed)
		return errBroken
	}), Options{Logger: quiet()})
	if got := invoke(t, t.Context(), h, event(change{item: "a", seq: 1}, change{item: "b", seq: 2})); got != failsFrom(1) {
		t.Errorf("answer %s", got)
	}
	if !finished {
		t.Error("answered before the running handler returned")
	}
}

func TestFailureWithoutSequenceNumberFailsTheBatch(t *testing.T) {
	h := NewHandler(one(obey), Options{Logger: quiet()})
	answer, err := h.Invoke(t.Context(), event(change{item: "a", seq: 1}, change{item: "b", seq: none, do: "fail"}, change{item: "c", seq: 3}))
	if err == nil {
		t.Fatalf("answer %s, want an error", answer)
	}
	if !strings.Contains(err.Error(), "SequenceNumber") || !strings.Contains(err.Error(), "record 2 of 3") {
		t.Errorf("error %q", err)
	}
}

// Pipes match failures by eventID. The answer names the first unsettled record and all
// after it. It fits pipes that cut at the first name, and pipes that retry the named
// records.
func TestPipeAnswers(t *testing.T) {
	batch := []change{{seq: 8, id: "one"}, {seq: 9, id: "two", do: "fail"}, {seq: 10, id: "three"}}
	h := NewHandler(one(obey), Options{Concurrency: 1, Logger: quiet()})
	if got, want := invoke(t, t.Context(), h, array(batch...)), `{"batchItemFailures":[{"itemIdentifier":"two"},{"itemIdentifier":"three"}]}`; got != want {
		t.Errorf("answer %s, want %s", got, want)
	}
	batch[1].do = ""
	if got := invoke(t, t.Context(), h, append([]byte("\n "), array(batch...)...)); got != allDone {
		t.Errorf("answer %s", got)
	}
	batch[1].do, batch[2].id = "fail", "-"
	if answer, err := h.Invoke(t.Context(), array(batch...)); err == nil || !strings.Contains(err.Error(), "eventID") {
		t.Errorf("answer %s, error %v; want an error about the missing eventID", answer, err)
	}
}

// A record that cannot be decoded counts as failed; its neighbours are handled.
func TestUndecodableRecordIsAFailure(t *testing.T) {
	batch := []change{{item: "a", seq: 1}, {item: "b", seq: 2, raw: `"n":{"N":"1","S":"x"}`}, {item: "c", seq: 3}}
	var logged syncBuffer
	h := NewHandler(one(obey), Options{Logger: logTo(&logged)})
	if got := invoke(t, t.Context(), h, event(batch...)); got != failsFrom(2) {
		t.Errorf("answer %s", got)
	}
	if !strings.Contains(logged.String(), "sequence="+string(recordtest.Sequence(2))) {
		t.Errorf("the log does not name the record:\n%s", logged.String())
	}

	var dead parked
	h = NewHandler(one(obey), Options{Logger: quiet(), DeadLetter: &dead})
	if got := invoke(t, t.Context(), h, event(batch...)); got != allDone {
		t.Errorf("with dead letters: answer %s", got)
	}
	if len(dead.raw) != 1 || !strings.Contains(dead.raw[0], `"n":{"N":"1","S":"x"}`) {
		t.Errorf("parked %q, want the whole record", dead.raw)
	}
}

// parked is a dead letter store that keeps records as they came.
type parked struct {
	mu    sync.Mutex
	raw   []string
	fails error
}

func (p *parked) Park(_ context.Context, rec *sluice.Record, _ sluice.Failure) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fails != nil {
		return p.fails
	}
	p.raw = append(p.raw, string(rec.Raw()))
	return nil
}

// Poison is parked whole and the batch goes on.
func TestDeadLetter(t *testing.T) {
	batch := event(change{item: "a", seq: 1}, change{item: "b", seq: 2, do: "permanent"}, change{item: "c", seq: 3})
	var dead parked
	var last Invocation
	h := NewHandler(one(obey), Options{Logger: quiet(), DeadLetter: &dead, Invoked: func(i Invocation) { last = i }})
	if got := invoke(t, t.Context(), h, batch); got != allDone {
		t.Errorf("answer %s", got)
	}
	if len(dead.raw) != 1 || !strings.Contains(dead.raw[0], `"SequenceNumber":"`+string(recordtest.Sequence(2))+`"`) || !strings.Contains(dead.raw[0], `"permanent"`) {
		t.Errorf("parked %q, want the whole record", dead.raw)
	}
	if last.Parked != 1 || last.Settled != 3 || last.Failed != 0 {
		t.Errorf("told %+v", last)
	}

	dead.fails = errBroken
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if got := invoke(t, ctx, h, batch); got != failsFrom(2) {
		t.Errorf("dead letters down: answer %s", got)
	}
}

// Attempts cannot be counted across invocations; age can.
func TestMaxAgeParksOldFailures(t *testing.T) {
	var dead parked
	h := NewHandler(one(obey), Options{Logger: quiet(), DeadLetter: &dead, MaxAge: time.Hour})
	if got := invoke(t, t.Context(), h, event(change{seq: 1, do: "fail"}, change{seq: 2})); got != allDone {
		t.Errorf("answer %s", got)
	}
	if len(dead.raw) != 1 {
		t.Errorf("parked %d records, want 1", len(dead.raw))
	}
	h = NewHandler(one(obey), Options{Logger: quiet(), DeadLetter: &dead, MaxAge: 200 * 365 * 24 * time.Hour})
	if got := invoke(t, t.Context(), h, event(change{seq: 1, do: "fail"})); got != failsFrom(1) {
		t.Errorf("young record: answer %s", got)
	}
}

func TestHooksAndLog(t *testing.T) {
	var got []Invocation
	var logged syncBuffer
	handled := map[flow.Result]int{}
	h := NewHandler(one(obey), Options{
		Concurrency: 1,
		Logger:      logTo(&logged),
		Invoked:     func(i Invocation) { got = append(got, i) },
		FlowHooks: flow.Hooks{Handled: func(_ context.Context, _ *sluice.Record, _ *sluice.Route, r flow.Result, _ time.Duration, _ error) {
			handled[r]++
		}},
	})
	invoke(t, t.Context(), h, event(change{seq: 1}, change{seq: 2}))
	if logged.String() != "" {
		t.Errorf("a good batch logs %s", logged.String())
	}
	deadline := time.Now().Add(time.Hour)
	ctx, cancel := context.WithDeadline(t.Context(), deadline)
	defer cancel()
	ctx = lambdacontext.NewContext(ctx, &lambdacontext.LambdaContext{AwsRequestID: "r-17"})
	invoke(t, ctx, h, event(change{seq: 3}, change{seq: 4, do: "panic"}, change{seq: 5}))
	h.Invoke(t.Context(), []byte(`{}`)) //nolint:errcheck // the hook is told
	invoke(t, t.Context(), h, array(change{seq: 6}))
	want := []Invocation{
		{Cold: true, Records: 2, Settled: 2},
		{RequestID: "r-17", Deadline: deadline, Records: 3, Settled: 1, Failed: 1, From: string(recordtest.Sequence(4))},
		{},
		{Pipe: true, Records: 1, Settled: 1},
	}
	if len(got) != len(want) {
		t.Fatalf("told of %d invocations, want %d", len(got), len(want))
	}
	if got[1].Stopped == nil || got[1].Err != nil || got[2].Err == nil {
		t.Errorf("errors told: %v, %v, %v", got[1].Stopped, got[1].Err, got[2].Err)
	}
	for i := range got {
		got[i].Took, got[i].Stopped, got[i].Err = 0, nil, nil
		if got[i] != want[i] {
			t.Errorf("invocation %d: %+v, want %+v", i+1, got[i], want[i])
		}
	}
	if handled[flow.Done] != 4 || handled[flow.Stopped] != 1 {
		t.Errorf("the flow's own hook saw %v", handled)
	}
	for _, part := range []string{"request=r-17", "sequence=" + string(recordtest.Sequence(4)), "table=manhunt", "route=only", "handler fell over", "invoke_test.go", "settled=1", "from=" + string(recordtest.Sequence(4))} {
		if !strings.Contains(logged.String(), part) {
			t.Errorf("the log lacks %q:\n%s", part, logged.String())
		}
	}
}

// Payloads never reach the log.
func TestLogHoldsNoPayload(t *testing.T) {
	var logged syncBuffer
	h := NewHandler(one(obey), Options{Logger: logTo(&logged)})
	secret := `"entityType":{"S":"search"},"do":{"S":"fail"},"phone":{"S":"s3cr3t"}`
	invoke(t, t.Context(), h, event(change{seq: 1, raw: secret}))
	invoke(t, t.Context(), h, event(change{seq: 1, raw: `"phone":{"S":"s3cr3t","N":"1"}`}))
	h.Invoke(t.Context(), []byte(`{"s3cr3t":`)) //nolint:errcheck // the log is what counts
	if strings.Contains(logged.String(), "s3cr3t") {
		t.Errorf("the log holds a payload:\n%s", logged.String())
	}
}

// The runtime reuses the payload's memory: a record read later, by a handler
// or by dead letters, must not change with it.
func TestPayloadIsNotKept(t *testing.T) {
	var kept *sluice.Record
	h := NewHandler(one(func(_ context.Context, rec *sluice.Record) error { kept = rec; return nil }), Options{})
	payload := event(change{seq: 1, do: "ok"})
	invoke(t, t.Context(), h, payload)
	for i := range payload {
		payload[i] = 'Z'
	}
	if got := do(kept); got != "ok" {
		t.Errorf("the record changed with the runtime's buffer: %q", got)
	}
}

// The largest batch there is: 10,000 records, 6 MB.
func TestLargestBatch(t *testing.T) {
	if localtest.Elsewhere(t) { // TestConcurrentInvocations has the race detector
		return
	}
	const n = 10_000
	batch := make([]change, n)
	for i := range batch {
		batch[i] = change{item: fmt.Sprint(i % 500), seq: 1000 + i, pad: 115}
	}
	batch[7777].do = "fail"
	payload := event(batch...)
	if len(payload) < 5<<20 || len(payload) > 6<<20 {
		t.Fatalf("the event has %d bytes, want nearly 6 MB", len(payload))
	}
	h := NewHandler(one(obey), Options{Logger: quiet()})
	if got := invoke(t, t.Context(), h, payload); got != failsFrom(8777) {
		t.Errorf("answer %s", got)
	}
	batch[7777].do = ""
	if got := invoke(t, t.Context(), h, event(batch...)); got != allDone {
		t.Errorf("answer %s", got)
	}
}

// With managed concurrency, invocations share the Handler and nothing else.
func TestConcurrentInvocations(t *testing.T) {
	h := NewHandler(one(obey), Options{Logger: quiet()})
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for j := range 20 {
				seq := 1000*i + 10*j
				batch := []change{{seq: seq + 1}, {seq: seq + 2}, {seq: seq + 3}}
				want := allDone
				if fail := (i + j) % 4; fail > 0 {
					batch[fail-1].do = "fail"
					want = failsFrom(batch[fail-1].seq)
				}
				if answer, err := h.Invoke(t.Context(), event(batch...)); err != nil || string(answer) != want {
					t.Errorf("batch %d: answer %s, error %v; want %s", seq, answer, err, want)
				}
			}
		})
	}
	wg.Wait()
}

// A route's limits hold over all invocations of the process.
func TestConcurrentInvocationsShareARoutesLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		running, most := 0, 0
		var mu sync.Mutex
		add := func(n int) {
			mu.Lock()
			defer mu.Unlock()
			running += n
			most = max(most, running)
		}
		h := NewHandler(matcher{{Name: "narrow", Concurrency: 2, Handler: func(context.Context, *sluice.Record) error {
			add(1)
			time.Sleep(time.Second)
			add(-1)
			return nil
		}}}, Options{})
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() { invoke(t, t.Context(), h, event(change{item: "a", seq: 1}, change{item: "b", seq: 2})) })
		}
		wg.Wait()
		if most != 2 {
			t.Errorf("%d at a time, want 2", most)
		}
	})
}

// A route that failed for invocation after invocation must not be kept shut
// once it works: the process is frozen in between, and no probe runs there.
func TestOutageEndsWithTheFirstSuccess(t *testing.T) {
	down := true
	h := NewHandler(one(func(context.Context, *sluice.Record) error {
		if down {
			return errBroken
		}
		return nil
	}), Options{Logger: quiet()})
	batch := event(change{item: "a", seq: 1}, change{item: "b", seq: 2}, change{item: "c", seq: 3})
	for range 30 {
		if got := invoke(t, t.Context(), h, batch); got != failsFrom(1) {
			t.Fatalf("answer %s", got)
		}
	}
	down = false
	if got := invoke(t, t.Context(), h, batch); got != allDone {
		t.Errorf("answer %s", got)
	}
}

// Nothing runs between invocations: the process is frozen there.
func TestNothingRunsBetweenInvocations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// runtime.NumGoroutine also counts goroutines that have ended a moment ago.
		goroutines := func() (n int, stacks string) {
			synctest.Wait()
			buf := make([]byte, 1<<20)
			stacks = string(buf[:runtime.Stack(buf, true)])
			return strings.Count(stacks, "synctest bubble"), stacks
		}
		h := NewHandler(one(obey), Options{Logger: quiet()})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		before, _ := goroutines()
		for i := range 50 {
			what := []string{"ok", "fail", "panic", "permanent", "later"}[i%5]
			invoke(t, ctx, h, event(change{item: "a", seq: 1}, change{item: "b", seq: 2, do: what}, change{item: "c", seq: 3}))
			if after, stacks := goroutines(); after > before {
				t.Fatalf("%d goroutines before, %d after an invocation:\n%s", before, after, stacks)
			}
		}
	})
}

func TestOptionsAreChecked(t *testing.T) {
	for _, tt := range []struct {
		name string
		make func()
		want string
	}{
		{"no router", func() { NewHandler(nil, Options{}) }, "without a router"},
		{"no route", func() { NewHandler(matcher{}, Options{}) }, "there is no route: nothing would be handled"},
		{"negative margin", func() { NewHandler(one(obey), Options{Margin: -1}) }, "Options.Margin is -1"},
		{"negative concurrency", func() { NewHandler(one(obey), Options{Concurrency: -2}) }, "Options.Concurrency is -2"},
		{"age without dead letters", func() { NewHandler(one(obey), Options{MaxAge: time.Hour}) }, "no DeadLetter"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, tt.want) {
					t.Errorf("panicked with %q, want %q in it", got, tt.want)
				}
			}()
			tt.make()
		})
	}
}
