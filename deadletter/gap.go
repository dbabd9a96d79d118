package deadletter

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/sluicehq/sluice"
)

const (
	kindGap   = "gap"
	gapPrefix = "gap-" // of ids; greater than any digit, so that gaps are found without reading the records
)

// ParkGap keeps a gap, in the place of an earlier report of the same one.
func (b *Box) ParkGap(ctx context.Context, g *sluice.Gap) error {
	unlock, err := b.lock(ctx, 1)
	if err != nil {
		return err
	}
	defer unlock()
	e := gapEntry(g)
	return b.store(ctx, &e, label{})
}

// Gaps returns the gaps that were not acknowledged, ordered by After. Those
// that cannot be read are named in the error, beside those that can.
func (b *Box) Gaps(ctx context.Context) ([]sluice.Gap, error) {
	var gaps []sluice.Gap
	var errs []error
	for after := gapPrefix; ; {
		entries, last, err := b.List(ctx, after, page)
		if err != nil && last == "" {
			return gaps, errors.Join(append(errs, err)...)
		}
		errs = append(errs, err)
		for _, e := range entries {
			if e.Gap != nil {
				gaps = append(gaps, *e.Gap)
			}
		}
		if !strings.HasPrefix(last, gapPrefix) {
			return gaps, errors.Join(errs...)
		}
		after = last
	}
}

// AcknowledgeGap forgets a gap: somebody has seen it. It does what Delete does
// with the gap's id.
func (b *Box) AcknowledgeGap(ctx context.Context, g *sluice.Gap) error {
	return b.Delete(ctx, gapID(g))
}

// ParkGap sends a gap.
func (s Sender) ParkGap(ctx context.Context, g *sluice.Gap) error {
	e := gapEntry(g)
	data, err := e.Append(nil)
	if err != nil {
		return err
	}
	return s(ctx, e, data)
}

func gapEntry(g *sluice.Gap) Entry {
	copied := *g
	what := fault(g.Found, errors.New(g.String()))
	return Entry{
		ID: gapID(g), Gap: &copied, Table: g.Table, StreamARN: g.StreamARN, ShardID: g.ShardID, Sequence: g.After,
		First: what, Last: what, ParkedAt: g.Found,
	}
}

// gapID is the same for every report of one gap.
func gapID(g *sluice.Gap) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q", g.StreamARN, g.ShardID, g.After)
	if g.Next != "" {
		fmt.Fprintf(h, " %q", g.Next)
	}
	return gapPrefix + g.After.Fence() + "-" + hex.EncodeToString(h.Sum(nil)[:8])
}

// storedGap is what an entry says of a gap besides its position.
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
