package deadletter

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/sluicehq/sluice"
)

const (
	kindGap   = "gap"
	gapPrefix = "gap-" // of ids; greater than any digit, so gaps are found without reading records
)

// ParkGap stores a gap and replaces an earlier report of it.
func (b *Box) ParkGap(ctx context.Context, g *sluice.Gap) error {
	e := gapEntry(g)
	return b.locked(ctx, 1, func() error { return b.store(ctx, &e, label{}) })
}

// Gaps returns the unacknowledged gaps, ordered by After. With an error that names
// unreadable gaps it returns the others.
func (b *Box) Gaps(ctx context.Context) ([]sluice.Gap, error) {
	var gaps []sluice.Gap
	err := b.allAfter(ctx, gapPrefix, Filter{Kind: kindGap}, func(e Entry) error {
		gaps = append(gaps, *e.Gap)
		return nil
	})
	return gaps, err
}

// AcknowledgeGap deletes a gap that an operator has seen, like Delete with the
// gap's id.
func (b *Box) AcknowledgeGap(ctx context.Context, g *sluice.Gap) error {
	return b.Delete(ctx, gapID(g))
}

// ParkGap sends a gap.
func (s Sender) ParkGap(ctx context.Context, g *sluice.Gap) error {
	return s.send(ctx, gapEntry(g))
}

func gapEntry(g *sluice.Gap) Entry {
	copied := *g
	what := fault(g.Found, errors.New(g.String()))
	return Entry{
		ID: gapID(g), Gap: &copied, Table: g.Table, StreamARN: g.StreamARN, ShardID: g.ShardID, Sequence: g.After,
		First: what, Last: what, ParkedAt: g.Found,
	}
}

// gapID returns the same id for every report of one gap.
func gapID(g *sluice.Gap) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q", g.StreamARN, g.ShardID, g.After)
	if g.Next != "" {
		fmt.Fprintf(h, " %q", g.Next)
	}
	return gapPrefix + g.After.Fence() + "-" + hex.EncodeToString(h.Sum(nil)[:8])
}

// storedGap is the JSON form of a gap without its position.
type storedGap struct {
	Before string `json:"before,omitempty"`
	Gone   bool   `json:"gone,omitempty"`
	Next   string `json:"next,omitempty"`
}

func storeGap(g *sluice.Gap) *storedGap {
	return &storedGap{Before: string(g.Before), Gone: g.Gone, Next: g.Next}
}

func (s *storedGap) gap(e *Entry) *sluice.Gap {
	return &sluice.Gap{
		Table: e.Table, StreamARN: e.StreamARN, ShardID: e.ShardID, After: e.Sequence,
		Before: sluice.Sequence(s.Before), Gone: s.Gone, Next: s.Next, Found: e.ParkedAt,
	}
}
