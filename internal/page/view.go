package page

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/holders"
	"github.com/sluicehq/sluice/internal/letters"
)

// Daemon is what the page shows and changes. Its methods are safe for concurrent use,
// and quick but for those with a context.
type Daemon interface {
	Status() Status
	Tables() []Table // each with all of its shards, in any order
	// Held waits for new reports of other workers if it is to be patient.
	Held(patient bool) HeldItems
	Gaps() []Gap
	// Acknowledge acknowledges the gaps with these ids.
	Acknowledge(ctx context.Context, ids []string) error
	// Workers lists the processes that share the state; none without such.
	Workers(ctx context.Context) ([]holders.Worker, error)
	Settings() Settings
	// Throttle pauses, slows or resumes a route, which are the actions, by the form's
	// route, for, concurrency and rate. A warning says that the change works late.
	Throttle(ctx context.Context, action string, form url.Values) (warning string, err error)
	Letters
}

// Letters are the dead letters of a daemon. Show takes the beginning of an id, the
// others take whole ids.
type Letters interface {
	List(ctx context.Context, f deadletter.Filter, after string, limit int) (LetterList, error)
	Show(ctx context.Context, id string) (deadletter.Entry, error)
	// Explain says what each route would do with a record, without doing it; nil if that
	// cannot be told.
	Explain(ctx context.Context, rec *sluice.Record) []Explained
	// Redrive redrives the letters with these ids, or without ids the letters that f selects.
	Redrive(ctx context.Context, ids []string, f deadletter.Filter, how deadletter.How) (deadletter.Report, error)
	// Purge deletes the letters with these ids, or without ids the letters that f selects.
	Purge(ctx context.Context, ids []string, f deadletter.Filter, dryRun bool) (int, error)
}

// LetterList is some dead letters.
type LetterList struct {
	DeadLetters []letters.Outline `json:"deadLetters"`
	Next        string            `json:"next,omitempty"`       // the id to go on behind; empty at the end
	Unreadable  string            `json:"unreadable,omitempty"` // names entries that cannot be read
}

// Status is the daemon at a glance.
type Status struct {
	Application string             `json:"application"`
	Version     string             `json:"version"`
	Config      string             `json:"config"`           // fingerprint of the configuration
	Worker      string             `json:"worker,omitempty"` // its name in the state; empty without tables
	Started     time.Time          `json:"started"`
	Ready       bool               `json:"ready"`
	Reasons     []string           `json:"reasons"`          // why it is not
	Reload      *Reload            `json:"reload,omitempty"` // the last one; nil: none yet
	Tables      []Table            `json:"tables"`           // each with the shards that lag most
	Queues      []Queue            `json:"queues"`
	Backfills   []Backfill         `json:"backfills"`
	Cascades    []Cascade          `json:"cascades"`          // that run for seconds and go on, the longest first
	Routes      []Route            `json:"routes"`            // in the order of the configuration
	Held        int                `json:"held"`              // items that wait, at all workers
	Unknown     string             `json:"unknown,omitempty"` // why other workers are missing
	Gaps        int                `json:"gaps"`              // that nobody has acknowledged
	DeadLetters []deadletter.Count `json:"deadLetters"`
	CountedAt   time.Time          `json:"deadLettersCountedAt,omitzero"`
}

// Outcomes of a [Reload].
const (
	Reloaded  = "reloaded"
	Unchanged = "unchanged"
	Failed    = "failed"
)

// Reload is how a reload of the configuration has ended.
type Reload struct {
	Outcome string    `json:"outcome"` // see the constants
	At      time.Time `json:"at"`
	Config  string    `json:"config"`          // fingerprint of the configuration that runs
	Error   string    `json:"error,omitempty"` // why it has failed
}

// Text is a line for people.
func (r Reload) Text() string {
	at := r.At.Format(time.RFC3339)
	switch r.Outcome {
	case Reloaded:
		return "the configuration was reloaded at " + at
	case Unchanged:
		return "a reload at " + at + " found no change"
	}
	return "the reload at " + at + " failed, and the old configuration goes on: " + r.Error
}

// Hours is the time until a stream deletes the oldest record that is not settled.
type Hours float64

// Unknown is the time of a shard that this worker does not read; null in JSON.
const Unknown Hours = -1

// MarshalJSON implements [json.Marshaler].
func (h Hours) MarshalJSON() ([]byte, error) {
	if h < 0 {
		return []byte("null"), nil
	}
	return json.Marshal(float64(h))
}

// UnmarshalJSON implements [json.Unmarshaler].
func (h *Hours) UnmarshalJSON(data []byte) error {
	*h = Unknown
	if string(data) == "null" {
		return nil
	}
	return json.Unmarshal(data, (*float64)(h))
}

// less returns the smaller known time.
func (h Hours) less(other Hours) Hours {
	if h < 0 || other >= 0 && other < h {
		return other
	}
	return h
}

// Table is a table whose stream is read. Lag, hours and unsettled are of all workers whose
// report is known; of another worker, a lag under 10 s counts as none.
type Table struct {
	Table       string  `json:"table"`
	LagSeconds  float64 `json:"lagSeconds"` // the largest of its shards
	HoursToLoss Hours   `json:"hoursToLoss"`
	Unsettled   uint64  `json:"unsettled"`
	Open        int     `json:"openShards"` // not settled to their end, whoever reads them
	Reading     int     `json:"reading"`    // by this worker
	Settled     int     `json:"settled"`
	Shards      []Shard `json:"shards,omitempty"`
}

// Shard is a shard of a stream. This worker knows lag, hours, unsettled, last poll and error
// of a shard only if it reads it.
type Shard struct {
	Table       string    `json:"table"`
	ID          string    `json:"id"`
	Parent      string    `json:"parent,omitempty"`
	State       string    `json:"state"` // see the constants
	Reading     bool      `json:"reading"`
	Owner       string    `json:"owner,omitempty"`
	Position    string    `json:"position,omitempty"` // of the last settled record
	LagSeconds  float64   `json:"lagSeconds"`
	HoursToLoss Hours     `json:"hoursToLoss"`
	Unsettled   uint64    `json:"unsettled"`
	LastPoll    time.Time `json:"lastPoll,omitzero"`
	Error       string    `json:"error,omitempty"` // of the last poll
}

// States of a shard.
const (
	Open    = "open"    // DynamoDB writes to it
	Closed  = "closed"  // no new records come, and some are not settled
	Settled = "settled" // to its end
	Halted  = "halted"  // at a gap
)

// Queue is a queue that is consumed.
type Queue struct {
	Queue         string  `json:"queue"`
	InHand        int     `json:"inHand"`
	OldestSeconds float64 `json:"oldestSeconds"`
}

// Backfill is the reading of a whole table.
type Backfill struct {
	Table    string `json:"table"`
	Items    int64  `json:"items"` // read
	Settled  int64  `json:"settled"`
	Expected int64  `json:"expected"` // about
	Finished bool   `json:"finished"`
}

// Cascade is a cascade that deletes rows.
type Cascade struct {
	Table     string  `json:"table"`  // of the rows
	Parent    string  `json:"parent"` // its table and key
	Deleted   int     `json:"deleted"`
	PerSecond float64 `json:"rowsPerSecond"`
	Seconds   float64 `json:"seconds"`
}

// Route is a route: how it is, and its last hour.
type Route struct {
	Route    string    `json:"route"`
	State    string    `json:"state"` // see [flow.State]
	Since    time.Time `json:"since,omitzero"`
	Failing  int       `json:"failingItems"`
	Waiting  int       `json:"waitingRecords"`
	Limit    int       `json:"concurrencyLimit"` // learned; 0: none
	Error    string    `json:"error,omitempty"`  // of the last call that failed
	Throttle *Throttle `json:"throttle,omitempty"`
	Last     Point     `json:"last"`                   // the newest whole point of Hour
	Hour     []Point   `json:"hour"`                   // the oldest first
	Others   []RouteAt `json:"otherWorkers,omitempty"` // with calls or a trouble
}

// RouteAt is the route at another worker.
type RouteAt struct {
	Worker string `json:"worker"`
	holders.RouteReport
}

// Rate is the calls a second of all workers.
func (r Route) Rate() float64 {
	rate := r.Last.Rate()
	for _, o := range r.Others {
		rate += o.PerSecond
	}
	return rate
}

// Troubles are the other workers at which the route fails.
func (r Route) Troubles() []RouteAt {
	return slices.DeleteFunc(slices.Clone(r.Others), func(o RouteAt) bool { return !o.Troubled() })
}

// Points of a route: one for each PointEvery of the last hour.
const (
	PointEvery = 30 * time.Second
	PointCount = 120
)

// Point is what a route did within PointEvery.
type Point struct {
	Done    uint32  `json:"done"`
	Skipped uint32  `json:"skipped"`
	Failed  uint32  `json:"failed"` // calls that will be tried again
	Parked  uint32  `json:"parked"`
	P50     float32 `json:"p50Seconds"` // of a call; 0 without calls
	P99     float32 `json:"p99Seconds"`
}

// Rate is the calls a second.
func (p Point) Rate() float64 {
	return float64(p.Done+p.Skipped+p.Failed+p.Parked) / PointEvery.Seconds()
}

// HeldItems are the items that wait, the oldest first: of other workers the oldest alone.
type HeldItems struct {
	Held     []holders.Item `json:"held"`
	Unlisted []string       `json:"unlisted"` // what the list lacks, in words
}

// Gap is a range of a shard that was lost unread, and that nobody has acknowledged.
type Gap struct {
	ID     string    `json:"id"`
	Table  string    `json:"table"`
	Found  time.Time `json:"found"`
	Lost   string    `json:"lost"`             // which records
	Repair []string  `json:"repair,omitempty"` // commands that repair the loss
}

// Settings are the configuration in force.
type Settings struct {
	Values []Setting `json:"values"`
}

// Setting is one setting of the daemon.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Explained is what a route would do with a record.
type Explained struct {
	Route   string
	Kind    string
	Takes   bool
	Why     string // it does not take the record
	Effects []string
	Error   string // it would fail
}
