package cascade

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/effect/message"
	"github.com/sluicehq/sluice/metrics"
)

const (
	// DefaultThreshold suits most cascades: Remove deletes the rows within a
	// fraction of a second.
	DefaultThreshold = 500
	// Unlimited is the Threshold without a queue: Remove deletes all rows, and
	// the record's item waits meanwhile.
	Unlimited = -1
)

// Config describes the parents of one table and their children. A field without a
// stated default is required. The functions must be safe for concurrent use; a
// sinks/dynamodb.Store provides all of them.
type Config struct {
	Table    string   // of the parents
	Key      []string // names of the key attributes: the partition key, then any sort key
	Children []Child  // the kinds of children of one parent

	// Get reads one item consistently; a missing item is the absent Item.
	Get func(ctx context.Context, table string, key sluice.Item) (sluice.Item, error)
	// Query reads a page of items, consistently unless it names an index.
	Query func(ctx context.Context, q dynamo.Query) (dynamo.Page, error)
	// Delete deletes items in concurrent requests. It calls the guard right
	// before it sends a request, after all waiting.
	Delete func(ctx context.Context, d dynamo.GuardedDelete)
	// Send makes a message durable. Unlimited does not need it, unless an index
	// finds the children.
	Send func(ctx context.Context, m sluice.Message) error

	// Threshold is the number of rows of one child kind that Remove deletes
	// before it hands over to the queue. 0 hands over every cascade; see also
	// DefaultThreshold and Unlimited.
	Threshold  int
	InlineTime time.Duration // after it Remove hands over the rest, whatever the Threshold, even if it only read rows that stay; at most half of the time to the context's deadline (default 5 s)

	Budget     time.Duration // for one message (default 5 min)
	Margin     time.Duration // end of Budget, or of the time of a message's context, in which no deletes begin (default 30 s, at most half of the time)
	SweepAfter time.Duration // delay of the sweep (default 60 s, at most 15 min)

	PageSize int           // keys in one page of a query (default 1000); at most four pages are in memory
	Every    time.Duration // interval of Progress (default 5 s)
	// Progress is called every Every while rows are deleted, and at the end of
	// each record or message, concurrently. It must not block.
	Progress func(Progress)
	Metrics  metrics.Meter // of rows, messages and sweeps (default: none)
	Logger   *slog.Logger  // default slog.Default()
}

// Child is one kind of children: how to find and name them.
type Child struct {
	Name  string   // distinguishes the kinds of one parent in messages; one kind may have none
	Table string   // of the children
	Key   []string // names of the key attributes, as in Config
	Index string   // global secondary index that finds them; "" is the table

	// Partition is the partition key, of index or table, of all children of one
	// parent.
	Partition Attr
	// Sort is a prefix of their sort key, of index or table. Without a Name the
	// whole partition counts.
	Sort Attr

	// Exclude reports the rows that stay. The parent's own row always stays.
	// Exclude gets the key attributes and Attributes, or the whole item if an
	// index found it.
	//
	// An item found by an index is read by its key for that. Exclude does not
	// see later changes.
	Exclude    func(row sluice.Item) bool
	Attributes []string // attributes, or dotted paths, that Exclude reads besides the key

	// NotNewer keeps children written after the parent was put again. The zero
	// Limit keeps none.
	NotNewer Limit
}

// Attr is the value of a key attribute of the children: the text Before, the
// parent's attribute From, and the text After.
type Attr struct {
	Name   string // of the children's attribute
	From   string // attribute, or dotted path, of the parent's key or old image
	Before string
	After  string
}

// Cascade holds the handlers for the parents of one table. It is safe for
// concurrent use.
type Cascade struct {
	c      Config
	counts series
}

// New returns a Cascade, or an error that names every missing or invalid field. It
// makes no call.
func New(c Config) (*Cascade, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("cascade: %w", err)
	}
	return &Cascade{c, newSeries(c.Metrics)}, nil
}

func (c Config) withDefaults() Config {
	c.InlineTime = cmp.Or(c.InlineTime, 5*time.Second)
	c.Budget = cmp.Or(c.Budget, 5*time.Minute)
	c.Margin = cmp.Or(c.Margin, 30*time.Second)
	c.SweepAfter = cmp.Or(c.SweepAfter, time.Minute)
	c.Every = cmp.Or(c.Every, 5*time.Second)
	c.PageSize = cmp.Or(c.PageSize, 1000)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}

func (c Config) validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	missing := func(name string, is bool) {
		if is {
			bad("%s is missing", name)
		}
	}
	missing("Table", c.Table == "")
	missing("Get", c.Get == nil)
	missing("Query", c.Query == nil)
	missing("Delete", c.Delete == nil)
	if fault := keyFault(c.Key); fault != "" {
		bad("Key %s", fault)
	}
	missing("Children", len(c.Children) == 0)
	names := make(map[string]int)
	for i, child := range c.Children {
		for _, fault := range child.faults(c.Key) {
			bad("Children[%d]%s", i, fault)
		}
		if other, twice := names[child.Name]; twice {
			bad("Children[%d].Name is %q, as that of Children[%d]: messages could not tell them apart", i, child.Name, other)
		}
		names[child.Name] = i
	}
	switch byIndex := slices.ContainsFunc(c.Children, func(ch Child) bool { return ch.Index != "" }); {
	case c.Threshold < Unlimited:
		bad("Threshold is %d; want a number of rows, 0 to hand over every cascade, or Unlimited", c.Threshold)
	case c.Send == nil && c.Threshold != Unlimited:
		bad("Send is missing; without a queue Threshold is Unlimited")
	case c.Send == nil && byIndex:
		bad("Send is missing: children that are found by an index need a sweep later on, since an index lags")
	}
	for _, f := range []struct {
		name  string
		value time.Duration
	}{{"InlineTime", c.InlineTime}, {"Budget", c.Budget}, {"Margin", c.Margin}, {"SweepAfter", c.SweepAfter}, {"Every", c.Every}} {
		if f.value < 0 {
			bad("%s is %v; want more than 0, or 0 for the default", f.name, f.value)
		}
	}
	if c.SweepAfter > message.MaxDelay {
		bad("SweepAfter is %v; a queue delays by %v at most", c.SweepAfter, message.MaxDelay)
	}
	if c.PageSize < 0 {
		bad("PageSize is %d; want 1 at least, or 0 for the default", c.PageSize)
	}
	return errors.Join(errs...)
}

func (ch Child) faults(parentKey []string) (faults []string) {
	bad := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	if ch.Name == sweepName {
		bad(".Name is %q, which the sweeps of a child kind without a name are called", ch.Name)
	}
	if ch.Table == "" {
		bad(".Table is missing")
	}
	keyIsGood := true
	if fault := keyFault(ch.Key); fault != "" {
		bad(".Key %s", fault)
		keyIsGood = false
	}
	if ch.Partition.Name == "" {
		bad(".Partition.Name is missing")
	}
	if ch.Partition.From == "" && ch.Sort.From == "" {
		bad(".Partition.From is missing: the children of one parent would be those of all")
	}
	if ch.Partition.From == "" && ch.Partition.Before+ch.Partition.After == "" {
		bad(".Partition has no value: set From or Before")
	}
	if ch.Index == "" && keyIsGood && ch.Partition.Name != "" {
		if ch.Partition.Name != ch.Key[0] {
			bad(".Partition.Name is %q; the partition key of table %s is %q (or set Index)", ch.Partition.Name, ch.Table, ch.Key[0])
		}
		if ch.Sort.Name != "" && (len(ch.Key) < 2 || ch.Sort.Name != ch.Key[1]) {
			bad(".Sort.Name is %q, not the sort key of table %s (or set Index)", ch.Sort.Name, ch.Table)
		}
	}
	switch s := ch.Sort; {
	case s.Name == "" && s != Attr{}:
		bad(".Sort.Name is missing")
	case s.Name != "" && s.Before+s.From+s.After == "":
		bad(".Sort has no value: set Before or From")
	case s.From != "" && s.After == "":
		bad(".Sort.After is empty: the prefix of parent 1 would take the children of parent 12; want what separates, such as \"#\"")
	case s.Name != "" && s.Name == ch.Partition.Name:
		bad(".Sort.Name is %q, as Partition.Name", s.Name)
	}
	if ch.Exclude == nil && len(ch.Attributes) > 0 {
		bad(".Attributes are for Exclude, which is missing")
	}
	return append(faults, ch.NotNewer.faults(parentKey)...)
}

func keyFault(key []string) string {
	switch {
	case len(key) == 0:
		return "is missing: want the name of the partition key, and that of the sort key if there is one"
	case len(key) > 2:
		return fmt.Sprintf("is %q; want one name or two", key)
	case slices.Contains(key, ""):
		return fmt.Sprintf("is %q; want no empty name", key)
	case len(key) == 2 && key[0] == key[1]:
		return fmt.Sprintf("is %q; want two names", key)
	}
	return ""
}
