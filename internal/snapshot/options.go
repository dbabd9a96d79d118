package snapshot

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/state"
)

// ScanOptions say how a table is read. The zero value is the default.
type ScanOptions struct {
	// Segments is how many parts of the table are read side by side, at most
	// 256 (default: one for each 256 MB of the table, at most four for each
	// processor).
	Segments int

	// Eventual reads with eventual consistency, for half the units. A page may
	// then lack recent writes; see the package comment for the consequences
	// beside live reading.
	Eventual bool

	// ReadUnits is how many read units are taken a second. By default it is
	// Share of the table's provisioned read capacity, as it is when the reading
	// begins, and 1,000 of a table without, which is 4 MB a second.
	ReadUnits float64
	Share     float64 // more than 0, at most 1 (default 0.25)

	PageItems int32 // items read per call at most (default: the service's 1 MB)

	CallTimeout  time.Duration // of one call (default 30 s)
	StartTimeout time.Duration // for the service to answer at the start (default 5 s)
	// Patience is how long the calls of a segment may fail in a row before Scan
	// ends with the error (default 5 min). A Source has no end of it.
	Patience time.Duration

	Hooks  ScanHooks
	Logger *slog.Logger // default slog.Default()
}

// Options configure a Source. Table and Store are required; the zero value of
// everything else is the default.
type Options struct {
	Application string // separates applications that share a store (default "sluice")
	Table       string // the table's name
	Store       Store

	// Name tells several backfills of one table apart, each with a progress of
	// its own, such as those of two indices (default "": the only one).
	Name string

	// Again reads a table again after its backfill is finished. An unfinished
	// backfill continues.
	Again bool

	// WithoutStream begins without a stored position of the table's stream.
	// Later writes to the table may be lost, or be overwritten by older items.
	WithoutStream bool

	Scan ScanOptions
	Flow flow.Options // of every segment's flow; Policy must be flow.Park

	// GiveUpAfter is how many records of a route fail for good, with no other
	// outcome before, until Run ends with an error: a route that refuses all
	// would make a dead letter of every item (default 100).
	GiveUpAfter int

	SaveEvery time.Duration // between writes of the progress (default 1 s)
	Grace     time.Duration // from the cancelling of Run's context to its return (default 25 s)

	Hooks Hooks
}

// Store keeps the progress of a Source, and has the positions of streams. The
// stores of package state implement it.
type Store interface {
	state.Store
	state.Values
}

// ScanHooks are called as things happen, from the goroutine that made them
// happen; nil ones are passed over. They must be fast, must not block, and may
// be called concurrently.
type ScanHooks struct {
	// Scanned is called after each Scan call.
	Scanned func(Call)
}

// Call is one call of Scan.
type Call struct {
	Table     string
	Segment   int
	Items     int     // in the answer
	Bytes     int     // of the answer
	Units     float64 // read units that it consumed
	Throttled bool
	Took      time.Duration
	Err       error
}

// Hooks are called as ScanHooks are.
type Hooks struct {
	// Progress is called when the reading begins, each SaveEvery, and at the
	// end of Run; once, when it was finished before.
	Progress func(Progress)
	// Saved is called after each write of the progress to the store.
	Saved func(table string, took time.Duration, err error)
}

// Progress is how far a backfill is, since it was first begun.
type Progress struct {
	Table   string `json:"table"`
	Name    string `json:"-"`
	Items   int64  `json:"items"`   // read
	Settled int64  `json:"settled"` // of them; unsettled ones come again after a restart
	// What the service says of the table. Both are estimates up to six hours
	// old, and 0 of a new table.
	TableItems int64 `json:"expectedItems"`
	TableBytes int64 `json:"-"`

	Bytes    int64   `json:"bytes"`     // of the items' text
	Units    float64 `json:"readUnits"` // consumed
	Segments int     `json:"segments"`
	Done     int     `json:"segmentsDone"` // segments that are read and settled to their end
	Finished bool    `json:"finished"`

	Begun time.Time `json:"-"` // first
}

func (o ScanOptions) withDefaults() ScanOptions {
	o.Share = cmp.Or(o.Share, defaultShare)
	o.CallTimeout = cmp.Or(o.CallTimeout, 30*time.Second)
	o.StartTimeout = cmp.Or(o.StartTimeout, 5*time.Second)
	o.Patience = cmp.Or(o.Patience, 5*time.Minute)
	o.Logger = cmp.Or(o.Logger, slog.Default())
	return o
}

func (o Options) withDefaults() Options {
	o.Application = cmp.Or(o.Application, "sluice")
	o.GiveUpAfter = cmp.Or(o.GiveUpAfter, 100)
	o.SaveEvery = cmp.Or(o.SaveEvery, time.Second)
	o.Grace = cmp.Or(o.Grace, 25*time.Second)
	o.Scan = o.Scan.withDefaults()
	o.Flow.Logger = cmp.Or(o.Flow.Logger, o.Scan.Logger)
	return o
}
