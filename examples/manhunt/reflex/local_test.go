//go:build integration

package reflex

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsdynamodb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/examples/manhunt"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/handlers/escalation"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/sinks/dynamodb"
	"github.com/sluicehq/sluice/sinks/sqs"
	"github.com/sluicehq/sluice/sources/poller"
	"github.com/sluicehq/sluice/sources/queue"
	"github.com/sluicehq/sluice/state"
	"github.com/sluicehq/sluice/streamtest"
)

// city has daemons on real servers; each reads all records. The test sets its clock. A
// message that is due later hops each second, and arrives within a second after the
// clock is moved.
type city struct {
	t        *testing.T
	store    *dynamodb.Store
	searches *manhunt.Table
	table    string // Reflex's
	queues   *awssqs.Client
	urls     []string
	daemon   func() // starts one more

	mu      sync.Mutex
	moves   []move
	handled int // and not for later
	opened  int // INSERTs of searches
	calls   map[string]int
	bodies  map[string]map[string]bool // by dedupeKey
	skipped map[string]bool            // by dedupeKey: messages that were dropped
	parked  []error
}

func newCity(t *testing.T, clock string) *city {
	db, q := localtest.DynamoDB(t), localtest.SQS(t)
	name := localtest.Name("reflex")
	c := &city{t: t, table: name + "-reflex", calls: make(map[string]int), skipped: make(map[string]bool), bodies: make(map[string]map[string]bool)}
	c.move(clock)
	if err := errors.Join(manhunt.Create(t.Context(), db, name+"-manhunt"), Create(t.Context(), db, c.table)); err != nil {
		t.Fatal(err)
	}
	c.queues = awssqs.NewFromConfig(q)
	for _, n := range []string{name + "-attempts", name + "-reflex", name + "-watch"} {
		made, err := c.queues.CreateQueue(t.Context(), &awssqs.CreateQueueInput{QueueName: &n})
		if err != nil {
			t.Fatal(err)
		}
		c.urls = append(c.urls, *made.QueueUrl)
	}
	t.Cleanup(func() { // the test's own context has ended by now
		ctx := context.Background()
		client := awsdynamodb.NewFromConfig(db)
		for _, table := range []string{name + "-manhunt", c.table} {
			if _, err := client.DeleteTable(ctx, &awsdynamodb.DeleteTableInput{TableName: &table}); err != nil {
				t.Error(err)
			}
		}
		for _, url := range c.urls {
			if _, err := c.queues.DeleteQueue(ctx, &awssqs.DeleteQueueInput{QueueUrl: &url}); err != nil {
				t.Error(err)
			}
		}
	})
	var err error
	if c.store, err = dynamodb.New(db, dynamodb.Options{}); err != nil {
		t.Fatal(err)
	}
	c.searches = manhunt.NewTable(c.store, name+"-manhunt")
	c.daemon = func() { c.start(db, q, name+"-manhunt") }
	return c
}

// start runs the routes of both applications until the test ends.
func (c *city) start(db, q aws.Config, manhuntTable string) {
	t := c.t
	sends := make([]func(context.Context, sluice.Message) error, len(c.urls))
	for i, url := range c.urls {
		sink, err := sqs.New(q, url, sqs.Options{})
		if err != nil {
			t.Fatal(err)
		}
		sends[i] = func(ctx context.Context, m sluice.Message) error {
			if i < 2 { // the watchdog is no part of what an application sees
				c.note(m)
			}
			return sink.Send(ctx, m)
		}
	}
	now := func() time.Time { return c.showed(time.Now()) }
	provider := func(_ context.Context, call manhunt.Call) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.calls[call.DedupeKey]++
		return nil
	}
	r := router.New(manhunt.TypeFrom(), router.Use(c.dated))
	err := errors.Join(
		Register(r, Deps{Store: c.store, Table: c.table, Manhunt: manhuntTable, Send: sends[1], MaxDelay: time.Second, Now: now}),
		manhunt.Register(r, manhunt.Deps{
			Store: c.store, Table: manhuntTable, Send: sends[0], Watch: sends[2], Notify: sends[1], MaxDelay: time.Second, Now: now,
			Alarm: func(_ context.Context, a escalation.Alarm) error {
				t.Errorf("alarm %+v", a)
				return nil
			},
			Providers: map[string]manhunt.Provider{"email": provider, "call": provider},
		}))
	if err != nil {
		t.Fatal(err)
	}
	quiet := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	hooks := flow.Hooks{Handled: func(_ context.Context, rec *sluice.Record, route *sluice.Route, _ flow.Result, _ time.Duration, err error) {
		c.mu.Lock()
		if sluice.IsPermanent(err) {
			c.parked = append(c.parked, err)
		}
		hop := sluice.IsSkip(err) && err.Error() == "skipped: not due yet"
		if sluice.IsSkip(err) && !hop {
			c.skipped[text(rec.New, "dedupeKey")] = true
		}
		if !hop && (err == nil || sluice.IsSkip(err)) {
			c.handled++
			if route != nil && route.Name == "first step" {
				c.opened++
			}
		}
		c.mu.Unlock()
	}}
	p, err := poller.New(db, r, poller.Options{
		Streams: []poller.Stream{{Table: manhuntTable}, {Table: c.table}}, Store: state.NewMemory(), Start: poller.TrimHorizon,
		Flow: flow.Options{Hooks: hooks}, Logger: quiet,
	})
	if err != nil {
		t.Fatal(err)
	}
	consumer, err := queue.New(q, r, queue.Options{Queues: c.urls, Wait: time.Second, FlowHooks: hooks, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, run := range []func(context.Context) error{p.Run, consumer.Run} {
		running.Go(func() {
			if err := run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
}

func (c *city) note(m sluice.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := m.Attributes["dedupeKey"].Value
	if c.bodies[key] == nil {
		c.bodies[key] = make(map[string]bool)
	}
	c.bodies[key][m.Body] = true
}

// move is where the test put the clock, and when.
type move struct{ when, to time.Time }

// runs is how long the clock runs on from where the test put it. A lease of two minutes
// that nobody could release ends in that time. What is due five minutes later is not.
const runs = 4 * time.Minute

// move puts the clock forward.
func (c *city) move(clock string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.moves = append(c.moves, move{time.Now(), at(clock)})
}

// showed returns the clock's time at a real time.
func (c *city) showed(when time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.moves[0]
	for _, m := range c.moves {
		if !when.Before(m.when) {
			last = m
		}
	}
	return last.to.Add(min(max(when.Sub(last.when), 0), runs))
}

// dated gives records the time of the clock. DynamoDB's own is years later: an attempt
// would look older than its search, and an INSERT that comes again would begin a round.
func (c *city) dated(next sluice.Handler) sluice.Handler {
	return func(ctx context.Context, rec *sluice.Record) error {
		dated := *rec
		dated.Created = c.showed(rec.Created)
		return next(ctx, &dated)
	}
}

func (c *city) put(table string, it sluice.Item) {
	c.t.Helper()
	if err := c.store.Put(c.t.Context(), table, it); err != nil {
		c.t.Fatal(err)
	}
}

// until waits for an effect of the daemons.
func (c *city) until(what string, holds func() bool) {
	c.t.Helper()
	localtest.Await(c.t, what, func() string {
		if holds() {
			return ""
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		return fmt.Sprintf("%d handled, calls %v, parked %v", c.handled, c.calls, c.parked)
	})
}

func (c *city) status(id string) string {
	s, _, err := c.searches.Search(c.t.Context(), id)
	if err != nil {
		c.t.Error(err)
	}
	return s.Status
}

func (c *city) incident() string {
	it, err := c.store.Get(c.t.Context(), c.table, key("I-1"))
	if err != nil {
		c.t.Error(err)
	}
	stage, _ := it.Lookup("stage")
	return text(it, "status") + " at " + stage.Str()
}

// called reports whether the steps, and no others, were called, once each.
func (c *city) called(want ...string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, n := range c.calls {
		if n > 1 {
			c.t.Errorf("%s was called %d times", key, n)
		}
	}
	return slices.Equal(slices.Sorted(maps.Keys(c.calls)), want)
}

// dropped reports whether a message was found to be for nothing.
func (c *city) dropped(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.skipped[key]
}

// ends checks the end: nothing is parked, and each key has one body.
func (c *city) ends(keys ...string) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.parked) > 0 {
		c.t.Errorf("parked: %v", c.parked)
	}
	for key, bodies := range c.bodies {
		if len(bodies) != 1 {
			c.t.Errorf("%d bodies for %s: %v", len(bodies), key, bodies)
		}
	}
	if got := slices.Sorted(maps.Keys(c.bodies)); !slices.Equal(got, keys) {
		c.t.Errorf("messages for %q, want %q", got, keys)
	}
}

// people puts two contacts with an email and a call each.
func (c *city) people(manhuntTable string) {
	for _, it := range manhunt.Fixtures()[:3] {
		c.put(manhuntTable, it)
		c.put(manhuntTable, streamtest.Item(strings.NewReplacer("89fa8f8", "9d657f8", "Zavier", "Alma").Replace(string(it.Raw()))))
	}
}

// From a search to an answered call, by two daemons: at once, and when one of them sees
// the search's INSERT after the other has made the first attempt.
func TestSearchOnServers(t *testing.T) {
	t.Run("at once", func(t *testing.T) { searchOnServers(t, false) })
	t.Run("one late", func(t *testing.T) { searchOnServers(t, true) })
}

func searchOnServers(t *testing.T, late bool) {
	c := newCity(t, "19:32:20")
	c.daemon()
	if !late {
		c.daemon()
	}
	name := strings.TrimSuffix(c.table, "reflex") + "manhunt"
	c.people(name)
	c.put(name, manhunt.Fixtures()[3])
	c.until("the email", func() bool { return c.called("a271244#0") })
	if late {
		c.until("the attempt", func() bool {
			_, attempts, _, err := c.searches.SearchWithAttempts(t.Context(), "a271244")
			return err == nil && len(attempts) == 1 && attempts[0].Attempted != ""
		})
		c.daemon()
		c.until("the search's INSERT once more", func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.opened == 2
		})
	}
	c.until("the message of the call", func() bool { return len(c.bodiesOf("a271244#1")) == 1 })
	c.move("19:52:19")
	c.move("19:52:20")
	c.until("the call", func() bool { return c.called("a271244#0", "a271244#1") })
	c.until("the expiry", func() bool { return len(c.bodiesOf("a271244#expire")) == 1 })
	if first, err := c.searches.Answer(t.Context(), "a271244", 1, "yes"); !first || err != nil {
		t.Fatal(first, err)
	}
	c.until("the answer", func() bool { return c.status("a271244") == manhunt.Successful })
	c.until("the notice", func() bool { return len(c.bodiesOf("a271244#successful")) == 1 })
	c.move("21:00:00")
	c.until("the expiry changes nothing", func() bool { return c.dropped("a271244#expire") })
	_, attempts, _, err := c.searches.SearchWithAttempts(t.Context(), "a271244")
	if err != nil || len(attempts) != 2 {
		t.Errorf("%+v, %v", attempts, err)
	}
	c.called()
	c.ends("a271244#0", "a271244#1", "a271244#expire", "a271244#successful")
}

func (c *city) bodiesOf(key string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Keys(c.bodies[key]))
}

// An incident to its acknowledgement, by two daemons at once.
func TestIncidentOnServers(t *testing.T) {
	c := newCity(t, "20:00:00")
	c.daemon()
	c.daemon()
	c.people(strings.TrimSuffix(c.table, "reflex") + "manhunt")
	c.put(c.table, Fixtures()[0])
	c.until("the first email", func() bool { return c.called("e923fda#0") })
	c.until("the first timer", func() bool { return slices.Equal(c.bodiesOf("I-1#1"), []string{firstTimer}) })
	c.until("the message of the first call", func() bool { return len(c.bodiesOf("e923fda#1")) == 1 })
	c.move("20:10:00")
	c.until("the second email", func() bool { return c.called("e923fda#0", "ebd7ce4#0") })
	c.until("the second timer", func() bool { return slices.Equal(c.bodiesOf("I-1#2"), []string{secondTimer}) })
	c.until("the message of the second call", func() bool { return len(c.bodiesOf("ebd7ce4#1")) == 1 })
	if got := c.incident(); got != "open at 2" {
		t.Errorf("incident %s", got)
	}
	c.move("20:12:00")
	if first, err := c.searches.Answer(t.Context(), "e923fda", 0, "yes"); !first || err != nil {
		t.Fatal(first, err)
	}
	c.until("the incident is acknowledged", func() bool { return c.incident() == "acknowledged at 2" })
	c.until("the other search is canceled", func() bool { return c.status("ebd7ce4") == manhunt.Canceled })
	c.until("its notice", func() bool { return len(c.bodiesOf("ebd7ce4#canceled")) == 1 })
	c.move("21:00:00")
	c.until("the timer changes nothing", func() bool { return c.dropped("I-1#2") })
	if got := c.incident() + ", " + c.status("e923fda") + ", " + c.status("ebd7ce4"); got != "acknowledged at 2, successful, canceled" {
		t.Error(got)
	}
	if !c.called("e923fda#0", "ebd7ce4#0") {
		t.Errorf("calls %v", c.calls)
	}
	c.ends("I-1#1", "I-1#2", "e923fda#0", "e923fda#1", "e923fda#successful", "ebd7ce4#0", "ebd7ce4#1", "ebd7ce4#canceled")
}
