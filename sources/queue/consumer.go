package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/latectx"
)

// Consumer receives the messages of queues and passes them to the routes of a
// Matcher. Its methods are safe for concurrent use.
type Consumer struct {
	matcher sluice.Matcher
	o       Options
	group   *flow.Group
	sources []*source
	ran     atomic.Bool
	opened  chan struct{}

	prepared []error // of opening each queue; nil: not yet
}

// New returns a Consumer that calls SQS with cfg. It makes no call; its error
// names a wrong option, or says that there is no route. The endpoint is that of
// cfg or of AWS_ENDPOINT_URL_SQS. Without one it is AWS's, or that of a URL
// outside of AWS.
func New(cfg aws.Config, m sluice.Matcher, o Options) (*Consumer, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	if m == nil {
		return nil, errors.New("queue: the matcher is nil: give a router")
	}
	if len(m.Routes()) == 0 {
		return nil, errors.New("queue: there is no route: nothing would be handled")
	}
	c := &Consumer{matcher: m, o: o, group: o.Group, opened: make(chan struct{})}
	if c.group == nil {
		c.group = flow.NewGroup(m)
	}
	names := map[string]bool{}
	for _, q := range o.Queues {
		at, ok := o.Configs[q]
		if !ok {
			at = cfg
		}
		s, err := newSource(c, at, q)
		if err != nil {
			return nil, err
		}
		if names[s.name] {
			return nil, fmt.Errorf("queue: Options.Queues: two queues are named %q: give them to two consumers", s.name)
		}
		names[s.name] = true
		c.sources = append(c.sources, s)
	}
	return c, nil
}

// Run consumes until ctx ends, and then returns within Options.Grace. It receives
// no more, returns messages that did not start, lets running handlers finish, and
// deletes settled messages. It returns nil after an orderly end, even if messages
// are left: they come again. It returns an error when a queue cannot be opened;
// see Options.Patient. Nothing else ends Run; see NotReady. Call Run once.
func (c *Consumer) Run(ctx context.Context) error {
	if c.ran.Swap(true) {
		return errors.New("queue: Run was called before: make a new Consumer")
	}
	if c.prepared == nil {
		err := c.Prepare(ctx)
		if ctx.Err() != nil {
			return nil // stopped before the start
		}
		if err != nil {
			return err
		}
	}
	if c.o.After != nil {
		select {
		case <-c.o.After:
		case <-ctx.Done():
			return nil
		}
	}
	close(c.opened)
	var t terms
	var ends [3]context.CancelFunc
	reserve := min(c.o.Grace/4, 3*time.Second)
	t.handlers, ends[0] = latectx.After(ctx, c.o.Grace-reserve)
	t.giveUp, ends[1] = latectx.After(ctx, c.o.Grace-reserve/2)
	t.writes, ends[2] = latectx.After(ctx, c.o.Grace)
	for _, end := range ends {
		defer end()
	}
	c.each(func(i int, s *source) {
		if err := c.prepared[i]; err == nil || s.openLater(ctx, err) {
			s.run(ctx, t)
		}
	})
	return nil
}

// Prepare does what Run begins with: it opens the queues. Its error is what Run would
// return.
func (c *Consumer) Prepare(ctx context.Context) error {
	errs := make([]error, len(c.sources))
	c.each(func(i int, s *source) { errs[i] = s.open(ctx) })
	for _, err := range errs {
		if err != nil && (!c.o.Patient || needsPerson(err)) {
			return errors.Join(errs...)
		}
	}
	c.prepared = errs
	return nil
}

// each does something with all queues at the same time.
func (c *Consumer) each(do func(i int, s *source)) {
	var all sync.WaitGroup
	for i, s := range c.sources {
		all.Go(func() { do(i, s) })
	}
	all.Wait()
}

// Opened returns a channel that is closed when Run may receive: it has opened
// every queue that responds. After that Run no longer returns an error of the
// start.
func (c *Consumer) Opened() <-chan struct{} { return c.opened }

// terms are the contexts that end one after another after Run's.
type terms struct {
	handlers context.Context // its end cancels handlers
	giveUp   context.Context // its end gives up on handlers that ignore that
	writes   context.Context // its end stops calls to SQS
}
