package poller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/sluicehq/sluice"
)

const (
	listStreams = "dynamodb:ListStreams"

	// patience is how old a stream becomes at most before it is read, whatever
	// the one before is at: flows give up what fails when it is 20 h old, so
	// that only what nothing can end lasts so long.
	patience = 22 * time.Hour
	// lastChance is the longest wait of an older stream; see waitsFor.
	lastChance = 10 * time.Minute
	// ailingEvery is the interval between requests for a table's stream when
	// the known stream has ended. Otherwise the interval is DiscoverEvery.
	ailingEvery = 10 * time.Second
)

// follower reads one of Options.Streams: a stream, or a table's streams one after
// another. A table gets a new stream when its stream is disabled and enabled
// again, or when the table is recreated.
//
// Later changes of an item are in later streams. So a stream begins only when all
// shards of earlier streams are settled to their end, and stored as such. Its
// start is stored at that moment. A stored start therefore means that the earlier
// streams are over.
type follower struct {
	p    *Poller
	name Stream
	bell chan struct{} // rung by streams; has room for one

	latest  string          // reported by the service at the start
	seen    map[string]bool // ARNs
	backoff backoff
	lefts   chan left
	away    int     // generations that are being read
	back    []left  // returned generations, until the follower has decided what follows
	errs    []error // of generations that returned at the end

	mu      sync.Mutex
	gens    []*generation // oldest first, without finished generations
	err     error         // of the last request for the table's stream; nil when it succeeded
	since   time.Time
	heardAt time.Time // last good response; at first, the start of following
	broke   trouble   // a panic, until a later request for the table
}

// generation is one stream of a table.
type generation struct {
	*stream
	first   bool // is read at once, and was checked at the start
	phase   genPhase
	err     error     // why it is unfit
	overdue time.Time // is read from then on, even if earlier streams are not settled
	waived  bool      // later streams do not wait for it
	late    bool      // waived because they could not wait longer
}

type genPhase uint8

const (
	pending genPhase = iota // waits for earlier generations
	reading
	unfit // its records lack images that a route needs
)

func newFollower(p *Poller, name Stream) *follower {
	return &follower{p: p, name: name, bell: make(chan struct{}, 1), seen: make(map[string]bool), lefts: make(chan left)}
}

// add adds a stream that is later than the known ones.
func (f *follower) add(arn string) *generation {
	g := &generation{stream: f.p.newStream(f.name, arn), overdue: time.Now().Add(f.p.waitsFor(arn))}
	if f.name.Table != "" {
		g.bell = f.bell
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.gens); n > 0 {
		f.gens[n-1].replace()
	}
	f.gens = append(f.gens, g)
	f.seen[arn] = true
	return g
}

// newest returns the newest generation. It is never over, because none replaced
// it.
func (f *follower) newest() *generation { return f.gens[len(f.gens)-1] }

// left is the result of a generation.
type left struct {
	gen *generation
	err error
}

// run reads the streams until ctx ends, and returns when all readers have.
func (f *follower) run(ctx context.Context) error {
	if f.name.Table == "" {
		begin, _ := f.due(time.Now())
		g := begin[0]
		err := g.read(ctx)
		if err != nil && ctx.Err() == nil {
			f.p.o.Logger.Error("stream is not read", "table", g.table, "stream", g.id.ARN, "error", err)
			f.setUnfit(g, err)
			<-ctx.Done()
		}
		return err
	}
	ask := time.Now() // the known stream may be of an earlier run
	if f.newest().first {
		ask = ask.Add(f.p.o.DiscoverEvery)
	}
	f.mu.Lock()
	f.heardAt = time.Now()
	f.mu.Unlock()
	var b backoff
	for {
		err := recovered(func() error { return f.follow(ctx, ask) })
		if !errors.As(err, new(*panicError)) {
			return err
		}
		// The follower repeats the lost step after its next request for the
		// table.
		f.p.panicked("following the table's streams", err, "table", f.name.Table)
		f.mu.Lock()
		f.broke.note(err)
		f.mu.Unlock()
		if sleep(ctx, b.next(transient)) != nil {
			for ; f.away > 0; f.away-- {
				f.stopped((<-f.lefts).err)
			}
			return errors.Join(append(f.errs, err)...)
		}
		ask = time.Now()
	}
}

// follow runs until a panic.
func (f *follower) follow(ctx context.Context, ask time.Time) error {
	var asked time.Time
	timer := time.NewTimer(0)
	defer timer.Stop()
	stopped := ctx.Done()
	for {
		if ctx.Err() != nil && f.away == 0 {
			return errors.Join(f.errs...)
		}
		for len(f.back) > 0 && ctx.Err() == nil {
			f.leave(ctx, f.back[0])
			f.back = f.back[1:]
		}
		if ctx.Err() == nil {
			begin, next := f.due(time.Now())
			for _, g := range begin {
				f.away++
				go func() { f.lefts <- left{g, g.read(ctx)} }()
			}
			if next.IsZero() || ask.Before(next) {
				next = ask
			}
			timer.Reset(time.Until(next))
		}
		select {
		case <-stopped:
			stopped = nil
			timer.Stop()
		case l := <-f.lefts:
			f.away--
			if ctx.Err() != nil {
				f.stopped(l.err)
			} else {
				f.back = append(f.back, l)
			}
		case <-f.bell:
			if at := asked.Add(ailingEvery); at.Before(ask) {
				ask = at
			}
		case <-timer.C:
			if now := time.Now(); !now.Before(ask) {
				asked = now
				ask = now.Add(f.ask(ctx))
			}
		}
	}
}

// stopped notes how a stream ended after ctx. A missing or unfit stream does not
// fail the stop: the next start finds it again.
func (f *follower) stopped(err error) {
	if !errors.Is(err, errNeverRead) && !errors.As(err, new(*StreamError)) {
		f.errs = append(f.errs, err)
	}
}

// read reads one stream until ctx ends, the stream is over, or it cannot be read.
// A panic fails this stream alone: its goroutines end, and it starts again from
// the stored positions.
func (s *stream) read(ctx context.Context) error {
	s.heard()
	var b backoff
	for {
		err := recovered(func() error {
			if !s.ready {
				if err := s.join(ctx, false); ctx.Err() != nil {
					return nil
				} else if err != nil {
					return err
				}
			}
			return s.run(ctx)
		})
		if !errors.As(err, new(*panicError)) {
			return err
		}
		s.p.panicked("reading a stream", err, "table", s.table, "stream", s.id.ARN)
		s.mu.Lock()
		if s.broke.err == nil {
			b.reset()
		}
		s.broke.note(err)
		s.mu.Unlock()
		if sleep(ctx, b.next(transient)) != nil {
			return err
		}
		s.renew()
	}
}

// due returns the streams to be read now, and when that may change without an
// event (zero: never).
func (f *follower) due(now time.Time) (begin []*generation, next time.Time) {
	var passed []leftBehind
	defer func() {
		for _, o := range passed {
			f.p.o.Logger.Error("a replaced stream is not settled yet, but the next one must be read before its records expire: items that still wait may be handled out of order",
				"table", o.old.table, "stream", o.old.id.ARN, "next", o.next.id.ARN)
		}
	}()
	f.mu.Lock()
	defer f.mu.Unlock()
	waits, halted := false, false
	for i, g := range f.gens {
		if g.phase == pending && waits && !halted && !now.Before(g.overdue) {
			passed = append(passed, waive(f.gens[:i], g)...)
			waits = false
		}
		switch {
		case g.phase != pending:
		case !waits:
			g.phase = reading
			begin = append(begin, g)
		case !halted && (next.IsZero() || g.overdue.Before(next)):
			next = g.overdue
		}
		waits = waits || !g.waived && g.phase != unfit
		halted = halted || g.isHalted()
	}
	return begin, next
}

// leftBehind is a stream that the next one no longer waits for.
type leftBehind struct{ old, next *generation }

// waive lets g go before the earlier streams, and returns them. The lock is held.
func waive(before []*generation, g *generation) (passed []leftBehind) {
	for _, b := range before {
		if !b.waived && b.phase != unfit {
			b.waived, b.late = true, true
			passed = append(passed, leftBehind{b, g})
		}
	}
	return passed
}

// leave handles the end of a stream's reading.
func (f *follower) leave(ctx context.Context, l left) {
	g := l.gen
	var bad *StreamError
	switch {
	case l.err == nil:
		f.p.o.Logger.Info("replaced stream is settled", "table", g.table, "stream", g.id.ARN)
		f.remove(g)
	case errors.Is(l.err, errNeverRead) && g.waived && !g.late: // an earlier run skipped it before it began the next one
		f.remove(g)
	case errors.As(l.err, &bad) && g == f.newest(): // until it is replaced
		f.p.o.Logger.Error("stream is not read", "table", g.table, "stream", g.id.ARN, "error", l.err)
		f.setUnfit(g, l.err)
	default:
		f.pass(ctx, g, l.err)
	}
}

// setUnfit marks a stream as unreadable.
func (f *follower) setUnfit(g *generation, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g.phase, g.err = unfit, err
}

// pass skips a stream that was never read.
func (f *follower) pass(ctx context.Context, g *generation, err error) {
	f.p.o.Logger.Error("stream is passed over", "table", g.table, "stream", g.id.ARN, "error", err)
	if f.p.foundGap(ctx, &sluice.Gap{Table: g.table, StreamARN: g.id.ARN, Gone: true, Found: time.Now()}) == nil {
		f.remove(g)
	}
}

func (f *follower) remove(g *generation) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gens = slices.DeleteFunc(f.gens, func(other *generation) bool { return other == g })
}

// ask requests the table's stream and returns when to ask again.
func (f *follower) ask(ctx context.Context) time.Duration {
	call, cancel := context.WithTimeout(ctx, f.p.o.CallTimeout)
	arn, err := f.p.latestStream(call, f.name.Table)
	cancel()
	if err == nil {
		err = f.told(ctx, arn)
	}
	if ctx.Err() != nil {
		return 0
	}
	was := f.note(err)
	k := classify(err)
	switch {
	case err == nil:
		f.backoff.reset()
	case streamless(err):
		f.backoff.reset()
		if !streamless(was) { // once, not in every round
			f.p.failed(f.shard(), describeTable, err, notFound, ailingEvery)
		}
	default:
		wait := f.backoff.next(k)
		f.p.failed(f.shard(), describeTable, err, k, wait)
		return wait
	}
	if err != nil || f.newest().ailing() {
		return min(ailingEvery, f.p.o.DiscoverEvery)
	}
	return f.p.o.DiscoverEvery
}

// streamless reports whether err says that there is no table or no stream.
func streamless(err error) bool {
	return err != nil && (errors.Is(err, errNoStream) || classify(err) == notFound)
}

func (f *follower) shard() Shard {
	s := f.newest().stream
	return Shard{Table: s.table, StreamARN: s.id.ARN}
}

// told takes the table's latest stream. A response may be older than the known
// streams.
func (f *follower) told(ctx context.Context, arn string) error {
	old := f.newest()
	switch {
	case arn == "":
		return errNoStream
	case f.seen[arn], older(arn, old.id.ARN):
		return nil
	case !sameTable(arn, old.id.ARN):
		return fmt.Errorf("the table's stream is %s, of another table than %s", arn, old.id.ARN)
	}
	between, err := f.between(ctx, old.id.ARN, arn)
	if err != nil {
		return err
	}
	for _, arn := range append(between, arn) {
		old = f.newest()
		f.add(arn)
		if err := f.p.foundGap(ctx, &sluice.Gap{Table: old.table, StreamARN: old.id.ARN, Next: arn, Found: time.Now()}); err != nil {
			return err
		}
		if old.phase == unfit {
			f.pass(ctx, old, old.err)
		}
	}
	return nil
}

// between lists the streams between two others. A table may get several streams
// between two requests.
func (f *follower) between(ctx context.Context, old, latest string) ([]string, error) {
	var found []string
	ctx, cancel := context.WithTimeout(ctx, f.p.o.CallTimeout)
	defer cancel()
	in := &dynamodbstreams.ListStreamsInput{TableName: aws.String(tableOf(latest))}
	for {
		out, err := f.p.api.ListStreams(ctx, in)
		if impossible(err) { // continue without them
			f.p.failed(f.shard(), listStreams, err, classify(err), 0)
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", listStreams, err)
		}
		for _, s := range out.Streams {
			arn := aws.ToString(s.StreamArn)
			if sameTable(arn, latest) && byAge(old, arn) < 0 && byAge(arn, latest) < 0 && !f.seen[arn] && !slices.Contains(found, arn) {
				found = append(found, arn)
			}
		}
		next := aws.ToString(out.LastEvaluatedStreamArn)
		if next == "" || next == aws.ToString(in.ExclusiveStartStreamArn) {
			slices.SortFunc(found, byAge)
			return found, nil
		}
		in.ExclusiveStartStreamArn = &next
	}
}

// note keeps the error of the request for NotReady, and returns the previous one.
func (f *follower) note(err error) (was error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if was = f.err; was == nil || streamless(was) != streamless(err) {
		f.since = time.Now()
	}
	f.err, f.broke = err, trouble{}
	if err == nil {
		f.heardAt = time.Now()
	}
	return was
}

// trouble returns the missing proofs: that the table was asked for its stream, and
// each stream for its shards, within listedAfter.
func (f *follower) trouble(staleAfter, listedAfter time.Duration) (reasons []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	say := func(format string, args ...any) { reasons = append(reasons, fmt.Sprintf(format, args...)) }
	ended := false // the table reports that the newest stream has ended
	switch k := classify(f.err); {
	case f.broke.err != nil:
		say("table %s: looking for its streams failed at %s and begins again by itself: %v", f.name.Table, f.broke.since.Format(time.RFC3339), brief(f.broke.err))
	case f.err == nil && f.name.Table != "" && time.Since(f.heardAt) > listedAfter:
		say("table %s was not asked for its stream since %s: see what else is not ready, and restart when it does not go on", f.name.Table, f.heardAt.Format(time.RFC3339))
	case f.err == nil:
	case k == notFound:
		ended = true
		say("table %s is gone since %s: %s: %v", f.name.Table, f.since.Format(time.RFC3339), describeTable, f.err)
	case errors.Is(f.err, errNoStream):
		ended = true
		say("table %s has no stream since %s: nothing new will arrive. "+enableStream, f.name.Table, f.since.Format(time.RFC3339), f.name.Table)
	case k == refused || time.Since(f.since) > staleAfter:
		say("table %s: whether its stream was replaced cannot be told: %s: %v", f.name.Table, describeTable, f.err)
	}
	for _, g := range f.gens {
		switch {
		case g.phase == unfit:
			reasons = append(reasons, g.err.Error())
		case g.phase == reading && !(ended && g.ailing()):
			if t := g.trouble(staleAfter, listedAfter); t != "" {
				reasons = append(reasons, t)
			}
		}
		if g.late {
			say("table %s: replaced stream %s is not settled, and the next one is read beside it", g.table, g.id.ARN)
		}
	}
	return reasons
}
