package poller

import (
	"context"
	"errors"
	"fmt"
	"github.com/aws/aws-sdk-go-v2/aws"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/state"
	"github.com/sluicehq/sluice/streamtest"
)

// A handover keeps the claims of the streams that are read on, and of no other.
func TestHandOverKeepsClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := streamtest.NewService(t)
		store := state.NewMemory()
		var handled atomic.Int64
		h := func(context.Context, *sluice.Record) error { handled.Add(1); return nil }
		run := func(before *Poller, tables ...string) (p *Poller, end func(error)) {
			o := testOptions(store, tables...)
			o.Owner = "me"
			p, err := New(svc.Config(), matcher(h), o)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Prepare(t.Context()); err != nil {
				t.Fatal(err)
			}
			if before != nil {
				p.Inherit(before)
			} else {
				p.owner.replace("me") // as when it was fenced before
			}
			ctx, stop := context.WithCancelCause(t.Context())
			done := make(chan error, 1)
			go func() { done <- p.Run(ctx) }()
			time.Sleep(5 * time.Second)
			return p, func(cause error) {
				stop(cause)
				if err := <-done; err != nil {
					t.Error(err)
				}
			}
		}
		a := svc.CreateTable("table-a", streamtest.TableOptions{PartitionKey: "id"})
		b := svc.CreateTable("table-b", streamtest.TableOptions{PartitionKey: "id"})
		owners := func() (all [2]string) {
			for i, arn := range []string{a.StreamARN(), b.StreamARN()} {
				shards, err := store.Shards(t.Context(), state.Stream{Application: "sluice", ARN: arn})
				if err != nil || len(shards) != 1 {
					t.Fatalf("%v, %v", shards, err)
				}
				all[i] = shards[0].Owner
			}
			return all
		}
		p, end := run(nil, "table-a", "table-b")
		a.Put(map[string]any{"id": "1"})
		time.Sleep(5 * time.Second)
		end(&HandOver{Streams: []Stream{{Table: "table-a"}, {Table: "table-c"}}})
		if got := owners(); got != [2]string{p.Owner(), ""} {
			t.Errorf("the claims are of %q", got)
		}
		a.Put(map[string]any{"id": "2"})
		_, end = run(p, "table-a")
		if handled.Load() != 2 {
			t.Errorf("%d calls, want one for each record", handled.Load())
		}
		end(nil)
		if got := owners(); got != [2]string{"", ""} {
			t.Errorf("after a stop the claims are of %q", got)
		}
	})
}

// What Prepare refuses, it refuses without a trace.
func TestPrepareStoresNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := streamtest.NewService(t)
		svc.CreateTable("table-a", streamtest.TableOptions{PartitionKey: "id"})
		store := state.NewMemory()
		for _, tt := range []struct {
			start, table string
			want         error
		}{{"", "table-a", state.ErrNoStart}, {TrimHorizon, "none", nil}} {
			o := testOptions(store, tt.table)
			o.Start = tt.start
			p, err := New(svc.Config(), matcher(func(context.Context, *sluice.Record) error { return nil }), o)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Prepare(t.Context()); err == nil || tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("table %q, start %q: %v", tt.table, tt.start, err)
			}
		}
		if all, err := store.Streams(t.Context(), "sluice"); err != nil || len(all) > 0 {
			t.Errorf("stored: %v, %v", all, err)
		}
	})
}

// beatStore is shared by several processes, and notes the heartbeats.
type beatStore struct {
	state.Store
	mu    sync.Mutex
	beats []time.Time
}

func (s *beatStore) SilentAfter() time.Duration { return 3750 * time.Millisecond }

func (s *beatStore) Heartbeat(ctx context.Context, owner string) error {
	s.mu.Lock()
	s.beats = append(s.beats, time.Now())
	s.mu.Unlock()
	return s.Store.Heartbeat(ctx, owner)
}

// slowListing is a service that lists ten streams a second.
type slowListing struct{ aws.HTTPClient }

func (s slowListing) Do(r *http.Request) (*http.Response, error) {
	if strings.Contains(r.Header.Get("X-Amz-Target"), "DescribeStream") {
		time.Sleep(100 * time.Millisecond)
	}
	return s.HTTPClient.Do(r)
}

// The owner of kept claims is not silent while the next Poller opens many streams.
func TestHandOverIsNotSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := streamtest.NewService(t)
		store := &beatStore{Store: state.NewMemory()}
		var names []string
		var streams []Stream
		for i := range 50 {
			name := fmt.Sprint("table-", i)
			svc.CreateTable(name, streamtest.TableOptions{PartitionKey: "id"})
			names, streams = append(names, name), append(streams, Stream{Table: name})
		}
		cfg := svc.Config()
		cfg.HTTPClient = slowListing{cfg.HTTPClient}
		prepared := func() *Poller {
			o := testOptions(store, names...)
			o.Owner = "me"
			o.BusyInterval, o.IdleInterval = 10*time.Second, 10*time.Second // reads are not what this is about
			p, err := New(cfg, matcher(func(context.Context, *sluice.Record) error { return nil }), o)
			if err == nil {
				err = p.Prepare(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		run := func(p *Poller) (end func(cause error)) {
			ctx, stop := context.WithCancelCause(t.Context())
			done := make(chan error, 1)
			go func() { done <- p.Run(ctx) }()
			time.Sleep(30 * time.Second)
			return func(cause error) {
				stop(cause)
				if err := <-done; err != nil {
					t.Error(err)
				}
			}
		}
		p := prepared()
		end := run(p)
		next := prepared()
		end(&HandOver{Streams: streams})
		next.Inherit(p)
		run(next)(nil)
		for i := 1; i < len(store.beats); i++ {
			if gap := store.beats[i].Sub(store.beats[i-1]); gap > store.SilentAfter() {
				t.Errorf("no heartbeat for %v: others claim all shards", gap)
			}
		}
	})
}
