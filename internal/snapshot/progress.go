package snapshot

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/job"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/state"
)

// The progress of a backfill is several values: a head under
// backfill/<name>/<ARN of the table>, and one for each segment under
// <head>/<generation>/<segment>, of a fleet with /<epoch> of the claim. A backfill that
// begins anew is a new generation: by the one write of the head all that was stored
// before counts no more, and is then deleted.

// head says which backfill it is.
type head struct {
	Version    int       `json:"version"`
	Generation string    `json:"generation"`
	TableID    string    `json:"tableId,omitempty"`
	Created    time.Time `json:"tableCreated"`
	Segments   int       `json:"segments"`
	Eventual   bool      `json:"eventual,omitempty"`
	Begun      time.Time `json:"begun"`

	Finished time.Time `json:"finished,omitzero"`
	Sum      *sum      `json:"sum,omitempty"` // once it is finished
}

// headVersion is what this program writes and the most that it reads.
const headVersion = 1

// mark is how far a segment is durable: everything up to the key After, or to
// the segment's end.
type mark struct {
	After json.RawMessage `json:"after,omitempty"`
	Done  bool            `json:"done,omitempty"`
	sum
}

// sum counts the items read.
type sum struct {
	Items int64   `json:"items"`
	Bytes int64   `json:"bytes"`
	Units float64 `json:"units"`
}

func (s *sum) add(o sum) {
	s.Items, s.Bytes, s.Units = s.Items+o.Items, s.Bytes+o.Bytes, s.Units+o.Units
}

// key returns the key after which the segment continues.
func (m *mark) key() (sluice.Item, error) {
	if m.After == nil {
		return sluice.Item{}, nil
	}
	return item.Parse(m.After)
}

// book keeps the progress of one backfill.
type book struct {
	store   state.Values
	app     string
	name    string // of the head
	head    head
	seen    []byte // the head as it is stored; nil if it is not
	timeout time.Duration
	saved   func(took time.Duration, err error)
}

func (b *book) segment(i int) string {
	return fmt.Sprintf("%s/%s/%03d", b.name, b.head.Generation, i)
}

// load reads the head; ok is false if there is none, or an outdated one.
func (b *book) load(ctx context.Context, log *slog.Logger) (ok bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	data, ok, err := b.store.GetValue(ctx, b.app, b.name)
	if err != nil {
		return false, err
	}
	b.head, b.seen = head{}, data
	if !ok {
		b.seen = nil
		return false, nil
	}
	if err := json.Unmarshal(data, &b.head); err != nil {
		log.Warn("the stored progress of the backfill cannot be read: it begins anew", "error", err)
		b.head = head{}
		return false, nil
	}
	if b.head.Version > headVersion {
		return false, fmt.Errorf("the progress %s is of version %d, written by a newer program; this one reads versions up to %d: run the newer program", b.name, b.head.Version, headVersion)
	}
	return true, nil
}

// marks reads those of all segments.
func (b *book) marks(ctx context.Context) ([]mark, error) {
	marks, unreadable, err := b.readable(ctx)
	if err == nil {
		err = unreadable
	}
	return marks, err
}

// readable returns the marks. An unreadable mark is zero, and unreadable its error.
func (b *book) readable(ctx context.Context) (_ []mark, unreadable, err error) {
	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	all, err := b.store.ListValues(ctx, b.app, b.name+"/"+b.head.Generation+"/")
	if err != nil {
		return nil, nil, err
	}
	marks := make([]mark, b.head.Segments)
	for _, v := range all { // that of the latest epoch comes last
		i, ok := b.segmentOf(v.Name)
		if !ok {
			continue
		}
		marks[i] = mark{}
		if err := json.Unmarshal(v.Data, &marks[i]); err != nil {
			unreadable = fmt.Errorf("value %s: %w", v.Name, err)
		}
	}
	return marks, unreadable, nil
}

// totals returns how many segments are done, and the items of all.
func totals(marks []mark) (done int, items int64) {
	for _, m := range marks {
		items += m.Items
		if m.Done {
			done++
		}
	}
	return done, items
}

// put stores one value.
func (b *book) put(ctx context.Context, name string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return b.write(ctx, func(ctx context.Context) error { return b.store.PutValue(ctx, b.app, name, data) })
}

func (b *book) write(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	start := time.Now()
	err := do(ctx)
	b.saved(time.Since(start), err)
	return err
}

// errOther says that another worker was faster.
var errOther = errors.New("another worker has begun or finished the backfill")

// putHead stores the head. In a fleet it returns errOther if the head has changed since
// it was read.
func (b *book) putHead(ctx context.Context, h head) error {
	data, err := json.Marshal(h)
	if err != nil {
		return err
	}
	swapped := true
	err = b.write(ctx, func(ctx context.Context) (err error) {
		if store, several := b.store.(job.Store); several {
			swapped, err = store.SwapValue(ctx, b.app, b.name, b.seen, data)
			return err
		}
		return b.store.PutValue(ctx, b.app, b.name, data)
	})
	if err == nil && !swapped {
		err = errOther
	}
	if err == nil {
		b.head, b.seen = h, data
	}
	return err
}

// begin starts a new generation.
func (b *book) begin(ctx context.Context, h head) error {
	h.Version, h.Generation, h.Begun = headVersion, strings.ToLower(rand.Text()[:12]), time.Now().UTC()
	if err := b.putHead(ctx, h); err != nil {
		return err
	}
	return b.tidy(ctx)
}

// finish stores that all is read and settled.
func (b *book) finish(ctx context.Context, all sum) error {
	h := b.head
	h.Finished, h.Sum = time.Now().UTC(), &all
	if err := b.putHead(ctx, h); err != nil {
		return err
	}
	_ = b.tidy(ctx) // the table's next backfill deletes the rest
	return nil
}

// tidy deletes what counts no more.
func (b *book) tidy(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	all, err := b.store.ListValues(ctx, b.app, b.name+"/")
	if err != nil {
		return err
	}
	keep := b.name + "/" + b.head.Generation + "/"
	for _, v := range all {
		if !b.head.Finished.IsZero() || !strings.HasPrefix(v.Name, keep) {
			if err := b.store.DeleteValue(ctx, b.app, v.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// differs returns why the stored backfill is not the requested one, or "". 0
// segments accept any stored number.
func (h *head) differs(want head) string {
	switch {
	case h.TableID != want.TableID || !h.Created.Equal(want.Created):
		return "the table was deleted and created again since"
	case h.Eventual != want.Eventual:
		return "its consistency is another"
	case want.Segments != 0 && h.Segments != want.Segments && h.Finished.IsZero():
		return fmt.Sprintf("it had %d segments, not %d", h.Segments, want.Segments)
	}
	return ""
}
