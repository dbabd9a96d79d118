package poller

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/sources/poller/internal/quota"
	"github.com/sluicehq/sluice/state"
)

// Values of Options.Start.
const (
	TrimHorizon = "TRIM_HORIZON" // with the oldest record of the stream
	Latest      = "LATEST"       // with records written from now on
)

// Stream names one stream by its ARN, or a table. The poller looks up the table's
// latest stream at the start, and follows its successors. Set exactly one of the
// two.
type Stream struct {
	Table string
	ARN   string
}

// String returns the given name.
func (s Stream) String() string {
	if s.ARN != "" {
		return "stream " + s.ARN
	}
	return fmt.Sprintf("table %q", s.Table)
}

// TableName returns the table's name, or "" when ARN is not a stream's ARN.
func (s Stream) TableName() string {
	if s.ARN != "" {
		return tableOf(s.ARN)
	}
	return s.Table
}

// GapPolicy says what a shard does after records were trimmed before they were
// read.
type GapPolicy uint8

const (
	// GoOn reports the gap and continues with the oldest available record.
	// Stopping would lose more.
	GoOn GapPolicy = iota
	// Halt stops the shard where the gap begins and keeps its position.
	Halt
)

// Options configure a Poller. Streams and Store are required. Every other zero
// value selects its default.
type Options struct {
	Application string   // separates applications that share a store (default "sluice")
	Streams     []Stream // at least one
	Store       state.Store

	// Start is where a stream without a stored position begins: TRIM_HORIZON or
	// LATEST. If it is empty, the poller refuses to begin such a stream. A
	// stored position always wins. A stream that replaces a read stream is read
	// from its beginning.
	Start string
	// StartName is the name of Start for users of the program, such as a flag.
	// The error about a missing start contains it (default "Options.Start").
	StartName string
	// EndpointName is the name of the setting that set the endpoint, such as a
	// variable. The *StreamError of an unreachable service contains it.
	EndpointName string

	Flow  flow.Options // of every shard's flow; Policy must be flow.Park
	Owner string       // of the leases; unique per process (default host name, process id and random digits)

	// The poller polls a shard at once while it has a backlog, and every
	// BusyInterval if it had a record in the last minute. Then it slows down to
	// every IdleInterval.
	BusyInterval time.Duration // default 200 ms
	IdleInterval time.Duration // default 1 s, never less than BusyInterval
	Limit        int32         // records per GetRecords call, 1 to 1,000 (default: the service's 1,000)

	// CallsPerTable limits the GetRecords calls per second for the shards of
	// one table, in turn. Shards with a backlog let others go first (default
	// 1,000).
	CallsPerTable int
	// MaxMemory limits the bytes of the pages of all shards, from before the
	// fetch until their records are settled. A shard without room for a page
	// waits. The minimum is 16 MiB, and 8 MiB per stream. Default: a quarter of
	// GOMEMLIMIT if that is set, else 256 MiB.
	MaxMemory int64

	DiscoverEvery   time.Duration // between full listings of shards; the end of a shard brings the next one forward (default 1 min)
	CheckpointEvery time.Duration // between writes of a position (default 1 s); for a shared store at least a second for each 20 shards that move
	HeartbeatEvery  time.Duration // between heartbeats to the store (default 1 s)
	CallTimeout     time.Duration // of one call to the service or the store (default 10 s)
	StartTimeout    time.Duration // for a response of the service at the start (default 5 s)
	Grace           time.Duration // from the cancelling of Run's context to its return (default 25 s)

	Gaps       GapPolicy
	StaleAfter time.Duration // a shard not polled for longer makes the poller unready (default 30 s)
	StallAfter time.Duration // so does a watermark that stands still for longer (default 5 min)

	Hooks  Hooks
	Logger *slog.Logger // default slog.Default()
}

func (o Options) withDefaults() Options {
	o.Application = cmp.Or(o.Application, "sluice")
	o.StartName = cmp.Or(o.StartName, "Options.Start")
	o.BusyInterval = cmp.Or(o.BusyInterval, 200*time.Millisecond)
	o.IdleInterval = cmp.Or(o.IdleInterval, max(time.Second, o.BusyInterval))
	o.CallsPerTable = cmp.Or(o.CallsPerTable, 1000)
	o.MaxMemory = cmp.Or(o.MaxMemory, quota.DefaultMemory(len(o.Streams)))
	o.DiscoverEvery = cmp.Or(o.DiscoverEvery, time.Minute)
	o.CheckpointEvery = cmp.Or(o.CheckpointEvery, time.Second)
	o.HeartbeatEvery = cmp.Or(o.HeartbeatEvery, time.Second)
	o.CallTimeout = cmp.Or(o.CallTimeout, 10*time.Second)
	o.StartTimeout = cmp.Or(o.StartTimeout, 5*time.Second)
	o.Grace = cmp.Or(o.Grace, 25*time.Second)
	o.StaleAfter = cmp.Or(o.StaleAfter, 30*time.Second)
	o.StallAfter = cmp.Or(o.StallAfter, 5*time.Minute)
	if o.Owner == "" {
		host, _ := os.Hostname() // the rest of the name is unique without it
		o.Owner = newOwner(fmt.Sprintf("%s/%d", host, os.Getpid()))
	}
	o.Logger = cmp.Or(o.Logger, slog.Default())
	return o
}

// validate checks options after defaults were set.
func (o Options) validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("poller: "+format, args...)) }
	if len(o.Streams) == 0 {
		bad("Options.Streams is empty: name at least one table or stream ARN")
	}
	for i, s := range o.Streams {
		switch {
		case (s.Table == "") == (s.ARN == ""):
			bad("Options.Streams[%d]: set either Table or ARN (Table is %q, ARN is %q)", i, s.Table, s.ARN)
		case s.TableName() == "":
			bad("Options.Streams[%d].ARN: %q is not a stream ARN: want arn:aws:dynamodb:REGION:ACCOUNT:table/TABLE/stream/LABEL", i, s.ARN)
		case slices.Contains(o.Streams[:i], s):
			bad("Options.Streams[%d]: %v is named twice", i, s)
		}
	}
	if o.Store == nil {
		bad("Options.Store is nil: give the store that keeps the positions")
	}
	if s, ok := o.Store.(shared); ok && o.HeartbeatEvery > s.SilentAfter()/3 {
		bad("Options.HeartbeatEvery is %v: others claim the shards of a worker that is silent for %v; want a third of that at most", o.HeartbeatEvery, s.SilentAfter())
	}
	if o.Start != "" && o.Start != TrimHorizon && o.Start != Latest {
		bad("%s is %q: want %s or %s", o.StartName, o.Start, TrimHorizon, Latest)
	}
	if o.Flow.Policy != flow.Park {
		bad("Options.Flow.Policy is Stop, which is for Lambda: a shard would stand still for good; want Park")
	}
	if o.Limit < 0 || o.Limit > maxRecords {
		bad("Options.Limit is %d: want 0 (the service's own limit) or 1 to %d", o.Limit, maxRecords)
	}
	if o.CallsPerTable < 0 {
		bad("Options.CallsPerTable is %d: want 1 at least, or 0 for the default", o.CallsPerTable)
	}
	if least := quota.LeastMemory(len(o.Streams)); o.MaxMemory < least {
		bad("Options.MaxMemory is %d: want %d at least for %d streams, or 0 for the default", o.MaxMemory, least, len(o.Streams))
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"BusyInterval", o.BusyInterval}, {"IdleInterval", o.IdleInterval}, {"DiscoverEvery", o.DiscoverEvery},
		{"CheckpointEvery", o.CheckpointEvery}, {"HeartbeatEvery", o.HeartbeatEvery}, {"CallTimeout", o.CallTimeout},
		{"StartTimeout", o.StartTimeout}, {"Grace", o.Grace}, {"StaleAfter", o.StaleAfter}, {"StallAfter", o.StallAfter},
	} {
		if d.value < 0 {
			bad("Options.%s is %v: want more than 0, or 0 for the default", d.name, d.value)
		}
	}
	if o.IdleInterval < o.BusyInterval {
		bad("Options.IdleInterval is %v: want at least BusyInterval (%v)", o.IdleInterval, o.BusyInterval)
	}
	return errors.Join(errs...)
}
