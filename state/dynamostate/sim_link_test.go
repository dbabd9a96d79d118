package dynamostate

import (
	"context"
	"errors"
	"iter"
	"maps"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice/internal/rows"
)

var (
	errDead      = errors.New("this process is dead")
	errCut       = errors.New("connection reset")
	errThrottled = errors.New("ThrottlingException")
)

// mode is what becomes of requests between a worker and another party.
type mode int

const (
	works     mode = iota
	cut            // no request arrives
	deaf           // no response arrives
	slowly         // requests, or responses, take 0.3 to 1.2 s
	lossy          // one request in five, or its response, is lost, or the request arrives late
	throttles      // every second request is refused
	modes
)

// simLink is between one process and everything outside of it. What does not pass here has
// no effect, so that a crash at each passage covers every moment between two lines.
type simLink struct {
	world *simWorld
	died  chan struct{}

	mu      sync.Mutex
	r       *rand.Rand
	dead    bool
	to      map[string]mode // by party
	paused  chan struct{}   // until it is closed nothing passes
	crashIn int             // passages until the process dies; 0: never
	skew    time.Duration   // of the process's wall clock
}

var parties = []string{"table", "stream", "sink"}

// draw returns a number below n.
func (l *simLink) draw(n int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.r.IntN(n)
}

// pass waits while the process is paused, and reports whether it lives.
func (l *simLink) pass() error {
	for {
		l.mu.Lock()
		paused := l.paused
		if l.dead {
			paused = nil
		} else if paused == nil && l.crashIn > 0 {
			if l.crashIn--; l.crashIn == 0 {
				l.dead = true
				close(l.died)
			}
		}
		dead := l.dead
		l.mu.Unlock()
		switch {
		case dead:
			return errDead
		case paused == nil:
			return nil
		}
		select {
		case <-paused:
		case <-l.died:
		}
	}
}

// call makes a request to another party.
func (l *simLink) call(ctx context.Context, party string, make func() error) error {
	if err := l.pass(); err != nil {
		return err
	}
	l.mu.Lock()
	how, chance, ms := l.to[party], l.r.IntN(10), l.r.IntN(900)
	l.mu.Unlock()
	delay := time.Duration(1+ms/50) * time.Millisecond
	hang := func() error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-l.died:
		case <-time.After(time.Second):
		}
		return errCut
	}
	switch how {
	case cut:
		return hang()
	case slowly:
		if chance < 5 {
			delay = time.Duration(300+ms) * time.Millisecond
		}
	case throttles:
		if chance < 5 {
			return errThrottled
		}
	case lossy:
		switch chance {
		case 0:
			return errCut
		case 1:
			time.AfterFunc(time.Duration(ms*5)*time.Millisecond, func() { _ = make() })
			return errCut
		}
	}
	select {
	case <-time.After(delay):
	case <-ctx.Done():
		// It may have arrived. That is a fault of the sink: what ends at the end of the
		// grace then comes again.
		if chance < 5 && (party != "sink" || !l.world.plan.orderly) {
			_ = make()
		}
		return ctx.Err()
	}
	err := make()
	if how == deaf || how == lossy && chance == 2 {
		return hang()
	}
	if how == slowly && chance >= 5 {
		select {
		case <-time.After(time.Duration(300+ms) * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := l.pass(); err != nil {
		return err
	}
	return err
}

func (l *simLink) isDead() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead
}

// kill ends the process at this moment.
func (l *simLink) kill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.dead {
		l.dead = true
		close(l.died)
	}
}

// pause stops the process for a while, as SIGSTOP does.
func (l *simLink) pause(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.paused != nil || l.dead {
		return
	}
	paused := make(chan struct{})
	l.paused = paused
	time.AfterFunc(d, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.paused = nil
		close(paused)
	})
}

// set changes the way to a party.
func (l *simLink) set(party string, m mode) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.to[party] = m
}

// heal ends all faults.
func (l *simLink) heal() {
	for _, party := range parties {
		l.set(party, works)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.crashIn = 0
}

// simRows is the state table as a process sees it.
type simRows struct {
	*simLink
	worker *simWorker
}

func (t simRows) Get(ctx context.Context, k rows.Key) (row rows.Row, err error) {
	err = t.call(ctx, "table", func() (err error) {
		row, err = t.world.rows.Get(context.Background(), k)
		return err
	})
	return row, err
}

func (t simRows) Write(ctx context.Context, seen rows.Row, set map[string]types.AttributeValue) (row rows.Row, err error) {
	err = t.call(ctx, "table", func() (err error) {
		row, err = t.world.write(t.worker, seen, t.shifted(set))
		return err
	})
	return row, err
}

// shifted returns what a process with a wrong wall clock would have written.
func (l *simLink) shifted(set map[string]types.AttributeValue) map[string]types.AttributeValue {
	l.mu.Lock()
	skew := int64(l.skew.Seconds())
	l.mu.Unlock()
	set = maps.Clone(set)
	for _, name := range []string{"expires", "claimed", "moved"} {
		if at, ok := set[name].(*types.AttributeValueMemberN); ok && skew != 0 {
			set[name] = &types.AttributeValueMemberN{Value: strconv.FormatInt(seconds(at)+skew, 10)}
		}
	}
	return set
}

func seconds(at *types.AttributeValueMemberN) int64 {
	n, err := strconv.ParseInt(at.Value, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

// jump sets the wall clock of a process wrong, by years or by seconds.
func (v *simWorker) jump() {
	far := time.Duration(1+v.w.r.IntN(100_000_000)) * time.Second
	skew := []time.Duration{far, -far, far % time.Minute, -far % time.Minute}[v.w.r.IntN(4)]
	v.w.say("%s has a clock that is wrong by %v", v.name, skew)
	v.link.mu.Lock()
	defer v.link.mu.Unlock()
	v.link.skew = skew
}

// expire deletes rows as the table's time to live does, which decides by the time that
// a process stored.
func (w *simWorld) expire() {
	for row, err := range w.rows.List(w.t.Context(), membersOf("app"), "", 0) {
		if err != nil {
			w.t.Fatal(err)
		}
		at, ok := row.Attributes[expiresName].(*types.AttributeValueMemberN)
		if !ok || seconds(at) > time.Now().Unix() {
			continue
		}
		w.say("the row of %s expires", row.Sort)
		if err := w.rows.Delete(w.t.Context(), row); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (t simRows) Delete(ctx context.Context, seen rows.Row) error {
	return t.call(ctx, "table", func() error { return t.world.rows.Delete(context.Background(), seen) })
}

func (t simRows) List(ctx context.Context, partition, after string, limit int) iter.Seq2[rows.Row, error] {
	return func(yield func(rows.Row, error) bool) {
		var all []rows.Row
		err := t.call(ctx, "table", func() error {
			for row, err := range t.world.rows.List(context.Background(), partition, after, limit) {
				if err != nil {
					return err
				}
				all = append(all, row)
			}
			return nil
		})
		if err != nil {
			yield(rows.Row{}, err)
			return
		}
		for _, row := range all {
			if !yield(row, nil) {
				return
			}
		}
	}
}

// simClient is the streams service as a process sees it.
type simClient struct {
	aws.HTTPClient
	link *simLink
}

func (c simClient) Do(req *http.Request) (resp *http.Response, err error) {
	failed := c.link.call(req.Context(), "stream", func() (err error) {
		if strings.Contains(req.URL.Host, "169.254") {
			return errCut
		}
		resp, err = c.HTTPClient.Do(req)
		return err
	})
	if failed != nil {
		if resp != nil {
			resp.Body.Close()
		}
		return nil, failed
	}
	return resp, nil
}
