//go:build integration || long

package dynamostate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/internal/rows"
	"github.com/sluicehq/sluice/internal/snapshot"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/state"
)

const ordersARN = "arn:aws:dynamodb:us-east-1:1:table/orders"

// readings are workers of one application that read a table of some items together.
type readings struct {
	t     *testing.T
	state *memory
	items int
	// pauses says that a worker may read on for a moment: it does not know that another
	// has finished its segment.
	pauses bool

	mu       sync.Mutex
	handled  map[string]int
	finished map[string]string // who finished a segment, by the end of its id
	begun    int               // times that the head was stored as begun
	ends     int               // and as finished
	scans    map[int]int       // of segments
}

func newReadings(t *testing.T, items int) *readings {
	f := &readings{t: t, items: items, state: new(memory), handled: map[string]int{}, finished: map[string]string{}, scans: map[int]int{}}
	if _, err := over(f.state).Start(t.Context(), state.Stream{Application: "app", ARN: ordersARN + "/stream/1"}, state.Start{Position: "TRIM_HORIZON"}); err != nil {
		t.Fatal(err)
	}
	return f
}

// RoundTrip answers Scan and DescribeTable. A page of 5 items takes 300 ms.
func (f *readings) RoundTrip(req *http.Request) (*http.Response, error) {
	var in struct {
		Segment, TotalSegments int
		ExclusiveStartKey      map[string]map[string]string
	}
	if err := json.NewDecoder(req.Body).Decode(&in); err != nil {
		return nil, err
	}
	text := fmt.Sprintf(`{"Table":{"TableArn":%q,"TableId":"1","CreationDateTime":1.7e9,"KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}],
		"StreamSpecification":{"StreamEnabled":true},"LatestStreamArn":"%s/stream/1"}}`, ordersARN, ordersARN)
	if strings.HasSuffix(req.Header.Get("X-Amz-Target"), ".Scan") {
		select {
		case <-time.After(300 * time.Millisecond):
		case <-req.Context().Done():
			return nil, req.Context().Err()
		}
		text = f.page(in.Segment, in.TotalSegments, in.ExclusiveStartKey["pk"]["S"])
	}
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text)), ContentLength: int64(len(text)), Request: req}, nil
}

func (f *readings) page(segment, total int, after string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.scans[segment]++; f.finished[fmt.Sprintf("%03d", segment)] != "" && !f.pauses {
		f.t.Errorf("segment %d is read again", segment)
	}
	total = max(total, 1)
	var items []string
	last, i := "", segment
	for ; i < f.items && len(items) < 5; i += total {
		if k := fmt.Sprintf("k%04d", i); k > after {
			items = append(items, fmt.Sprintf(`{"pk":{"S":%q}}`, k))
			last = fmt.Sprintf(`,"LastEvaluatedKey":{"pk":{"S":%q}}`, k)
		}
	}
	if i >= f.items {
		last = ""
	}
	return fmt.Sprintf(`{"Count":%d,"ScannedCount":%[1]d,"Items":[%s],"ConsumedCapacity":{"CapacityUnits":1}%s}`, len(items), strings.Join(items, ","), last)
}

// reader is one worker. fault is called with the number of each write of a job or a value,
// and returns "" or what happens to it.
type reader struct {
	rows.Table
	f     *readings
	kill  context.CancelFunc
	fault func(write int) string

	mu      sync.Mutex
	dead    bool
	cut     time.Time // no connection until then
	paused  time.Time // the process stands still until then
	writes  int
	handled int
}

func (r *reader) gone() error {
	r.mu.Lock()
	paused := time.Until(r.paused)
	r.mu.Unlock()
	time.Sleep(paused)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dead || time.Now().Before(r.cut) {
		return errors.New("no connection")
	}
	return nil
}

func (r *reader) die() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dead = true
	r.kill()
}

func (r *reader) Get(ctx context.Context, k rows.Key) (rows.Row, error) {
	if err := r.gone(); err != nil {
		return rows.Row{}, err
	}
	return r.Table.Get(ctx, k)
}

func (r *reader) Write(ctx context.Context, seen rows.Row, set map[string]types.AttributeValue) (rows.Row, error) {
	if err := r.gone(); err != nil {
		return rows.Row{}, err
	}
	how := ""
	if !strings.HasPrefix(seen.Partition, "members") && r.fault != nil {
		r.mu.Lock()
		r.writes++
		n := r.writes
		r.mu.Unlock()
		how = r.fault(n)
	}
	switch how {
	case "die before":
		r.die()
		return rows.Row{}, r.gone()
	case "cut off": // the handlers go on
		r.mu.Lock()
		r.cut = time.Now().Add(20 * time.Second)
		r.mu.Unlock()
		return rows.Row{}, r.gone()
	case "pause": // and the request arrives after it
		r.mu.Lock()
		r.paused = time.Now().Add(20 * time.Second)
		r.mu.Unlock()
		ctx = context.WithoutCancel(ctx)
		_ = r.gone()
	case "fail":
		return rows.Row{}, errLost
	}
	row, err := r.Table.Write(ctx, seen, set)
	if err == nil {
		r.f.wrote(seen, row)
	}
	switch how {
	case "die after":
		r.die()
		return rows.Row{}, r.gone()
	case "lose":
		return rows.Row{}, errLost
	}
	return row, err
}

// wrote notes what is finished.
func (f *readings) wrote(seen, row rows.Row) {
	f.mu.Lock()
	defer f.mu.Unlock()
	v, shardErr := decode[storedShard](row)
	before, beforeErr := decode[storedShard](seen)
	data, dataErr := decode[storedValue](row)
	switch {
	case strings.HasPrefix(row.Partition, "shards#") && shardErr == nil && beforeErr == nil && v.Finished && !before.Finished:
		segment := row.Sort[len(row.Sort)-3:]
		if f.finished[segment] != "" && f.ends == 0 {
			f.t.Errorf("segment %s is finished twice", segment)
		}
		f.finished[segment] = v.Owner
	case strings.HasPrefix(row.Partition, "values#") && dataErr == nil && strings.Contains(string(data.Data), `"generation"`):
		if strings.Contains(string(data.Data), `"finished"`) {
			f.ends++
		} else {
			f.begun++
		}
	}
}

// start begins a worker, and returns how to wait for its end.
func (f *readings) start(fault func(int) string) (r *reader, s *snapshot.Source, wait func() error) {
	ctx, cancel := context.WithCancel(f.t.Context())
	r = &reader{Table: f.state, f: f, fault: fault, kill: cancel}
	routes := router.New()
	routes.Handle("*#SNAPSHOT", func(ctx context.Context, rec *sluice.Record) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.dead {
			return errors.New("dead")
		}
		pk, _ := rec.Keys.Lookup("pk")
		f.mu.Lock()
		defer f.mu.Unlock()
		f.handled[pk.Str()]++
		r.handled++
		return nil
	})
	store := over(r)
	s, err := snapshot.New(aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""),
		HTTPClient: &http.Client{Transport: f}}, routes, snapshot.Options{Application: "app", Table: "orders", Store: store,
		Scan: snapshot.ScanOptions{Segments: 8, ReadUnits: 1e6, Logger: slog.New(slog.DiscardHandler)}})
	if err != nil {
		f.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		err := s.Run(ctx)
		cancel()
		if closing := store.Close(); r.gone() == nil {
			err = errors.Join(err, closing)
		}
		done <- err
	}()
	return r, s, func() error { return <-done }
}

// check fails the test unless all is handled and finished, and each row of a segment is gone.
func (f *readings) check() (again int) {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.items {
		n := f.handled[fmt.Sprintf("k%04d", i)]
		if n == 0 {
			f.t.Errorf("item %d is missing", i)
		}
		if again += n - 1; n > 2 {
			f.t.Errorf("item %d is handled %d times, by two workers", i, n)
		}
	}
	if len(f.finished) != 8 || f.begun != 1 || f.ends != 1 {
		f.t.Errorf("%d segments finished; the whole began %d times, and finished %d times", len(f.finished), f.begun, f.ends)
	}
	return again
}

// Workers that start one after another read the table together, each item once.
func TestBackfillTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newReadings(t, 400)
		var all []*reader
		var waits []func() error
		for range 4 {
			r, _, wait := f.start(nil)
			all, waits = append(all, r), append(waits, wait)
			time.Sleep(700 * time.Millisecond)
		}
		for i, wait := range waits {
			if err := wait(); err != nil {
				t.Errorf("worker %d: %v", i, err)
			}
		}
		if again := f.check(); again != 0 || f.ends != 1 {
			t.Errorf("%d items are handled again, and the whole is finished %d times", again, f.ends)
		}
		for i, r := range all[:3] {
			if r.handled == 0 {
				t.Errorf("worker %d has handled nothing", i)
			}
		}
		scans := len(f.scans)
		_, s, wait := f.start(nil)
		if err := wait(); err != nil || len(f.scans) != scans || s.Progress().Items != 400 || !s.Progress().Finished {
			t.Errorf("a worker that comes later: %+v, %v", s.Progress(), err)
		}
	})
}

// A worker dies before or after each of its writes, or gets no answer: the others
// do the rest, and read no finished segment again. So too if it has no connection for a
// while, or stands still between its look and its write.
func TestBackfillFaults(t *testing.T) {
	for _, how := range []string{"die before", "die after", "lose", "fail", "cut off", "pause"} {
		t.Run(how, func(t *testing.T) {
			if how != "cut off" && localtest.Elsewhere(t) {
				return
			}
			reached := true
			for n := 1; reached; n++ {
				synctest.Test(t, func(t *testing.T) {
					f := newReadings(t, 240)
					f.pauses = how == "pause"
					reached = false
					_, s, wait := f.start(func(write int) string {
						if write == n {
							reached = true
							return how
						}
						return ""
					})
					time.Sleep(time.Second)
					_, other, otherWait := f.start(nil)
					err, otherErr := wait(), otherWait()
					dies := strings.HasPrefix(how, "die") && reached
					if p := other.Progress(); otherErr != nil || !p.Finished || p.Items != 240 {
						t.Errorf("write %d: the other worker: %v, %+v", n, otherErr, other.Progress())
					}
					if !dies && s.Progress().Finished != (err == nil) {
						t.Errorf("write %d: %v, %+v", n, err, s.Progress())
					}
					if again := f.check(); how != "cut off" && how != "pause" && again > 120 {
						t.Errorf("write %d: %d items are handled again", n, again)
					}
				})
				if t.Failed() {
					return
				}
			}
		})
	}
}
