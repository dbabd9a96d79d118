package reindex

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/backoff"
	"github.com/sluicehq/sluice/internal/docrules"
)

// Comparison is the comparison of the two indices. Both are written meanwhile, so
// differences were checked several times.
type Comparison struct {
	Current, Other string
	Counts         [2]int64 // of Current and Other, as seen last
	CountsEqual    bool     // at one of the looks, as far as possible under writes
	Sampled        int      // documents that were compared
	Differences    []Difference
}

// Difference is a document that is not the same in both.
type Difference struct {
	ID      string `json:"id"`
	Routing string `json:"routing,omitempty"`
	Current int64  `json:"currentVersion"` // versions; 0 when it is not there
	Other   int64  `json:"otherVersion"`
	Bodies  bool   `json:"-"`              // both have it in equal versions, with different bodies
	Path    string `json:"path,omitempty"` // where they part
}

// Equal reports whether nothing differs.
func (c Comparison) Equal() bool { return c.CountsEqual && len(c.Differences) == 0 }

// String says what differs, in a few lines.
func (c Comparison) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s has %d documents, %s %d; %d compared, %d differ", c.Current, c.Counts[0], c.Other, c.Counts[1], c.Sampled, len(c.Differences))
	for i, d := range c.Differences {
		if i == 10 {
			b.WriteString("\n  …")
			break
		}
		switch {
		case d.Bodies:
			fmt.Fprintf(&b, "\n  %s: version %d has two bodies, which part at %s", d.ID, d.Current, d.Path)
		case d.Current == 0:
			fmt.Fprintf(&b, "\n  %s: not in %s, version %d in %s", d.ID, c.Current, d.Other, c.Other)
		case d.Other == 0:
			fmt.Fprintf(&b, "\n  %s: version %d in %s, not in %s", d.ID, d.Current, c.Current, c.Other)
		default:
			fmt.Fprintf(&b, "\n  %s: version %d in %s, %d in %s", d.ID, d.Current, c.Current, d.Other, c.Other)
		}
	}
	return b.String()
}

// NotEqualError says that the indices differ, which a swap would show to those
// who search. That is so while records wait for their effect, such as dead letters
// that the one index has taken and the other has not, and when a writer does not
// write to both.
type NotEqualError struct{ Comparison Comparison }

func (e *NotEqualError) Error() string {
	return "reindex: the two indices differ, by dead letters, by changes that are not handled yet, or since a writer does not write by reindex.Writer: " + e.Comparison.String()
}

// compare compares counts, and samples of documents: of each index those written
// last, among which are those of a writer that does not write to both, and random
// ones. It takes the stages Filled and Swapped.
func (r Reindex) compare(ctx context.Context, st Status) (Comparison, error) {
	r.Step("compare " + st.Current + " and " + st.Other)
	r.MarkField = cmp.Or(r.MarkField, st.meta.MarkField)
	c := Comparison{Current: st.Current, Other: st.Other}
	if err := r.counts(ctx, &c, 0); err != nil {
		return c, wrap(err)
	}
	open, err := r.sample(ctx, &c)
	if err != nil {
		return c, wrap(err)
	}
	for look := 1; ; look++ {
		if open, c.Differences, err = r.look(ctx, st, open); err != nil {
			return c, wrap(err)
		}
		if look >= r.Looks || len(open) == 0 && c.CountsEqual {
			return c, nil
		}
		if err := r.counts(ctx, &c, r.Settle); err != nil {
			return c, wrap(err)
		}
	}
}

// counts counts the other index, and the current one from a while before until
// right after. Writes reach one before the other, so the two are rarely equal. But
// while each holds what the other does, a moment earlier or later, the one number
// is between those of the other.
func (r Reindex) counts(ctx context.Context, c *Comparison, while time.Duration) error {
	if c.CountsEqual {
		return backoff.Sleep(ctx, while)
	}
	least, most := int64(math.MaxInt64), int64(0)
	count := func() error {
		n, err := r.Cluster.Count(ctx, c.Current, r.MarkField)
		c.Counts[0], least, most = n, min(least, n), max(most, n)
		return err
	}
	for range 5 {
		if err := count(); err != nil {
			return err
		}
		if while == 0 {
			break
		}
		if err := backoff.Sleep(ctx, while/5); err != nil {
			return err
		}
	}
	other, err := r.Cluster.Count(ctx, c.Other, r.MarkField)
	if err != nil {
		return err
	}
	if err := count(); err != nil {
		return err
	}
	c.Counts[1] = other
	c.CountsEqual = least <= other && other <= most
	return nil
}

// pending is a document that is compared, and the versions it had at the last
// look.
type pending struct {
	id, routing    string
	current, other int64
	looked         bool
}

// sample takes documents from both sides.
func (r Reindex) sample(ctx context.Context, c *Comparison) ([]pending, error) {
	seen := map[pending]bool{}
	var open []pending
	for _, index := range []string{c.Current, c.Other} {
		for _, last := range []bool{true, false} {
			docs, err := r.Cluster.Sample(ctx, index, r.Sample, last)
			if err != nil {
				return nil, err
			}
			for _, d := range docs {
				p := pending{id: d.ID, routing: d.Routing}
				if !seen[p] {
					seen[p] = true
					open = append(open, p)
				}
			}
		}
	}
	c.Sampled = len(open)
	return open, nil
}

// look compares documents as they are now. Those that differ are open, and
// differences for the time being.
func (r Reindex) look(ctx context.Context, st Status, pend []pending) (open []pending, differ []Difference, err error) {
	const chunk = 100
	for now := range slices.Chunk(pend, chunk) {
		refs := make([]document.Ref, 0, 2*len(now))
		for _, index := range []string{st.Current, st.Other} {
			for _, p := range now {
				refs = append(refs, document.Ref{Index: index, ID: p.id, Routing: p.routing})
			}
		}
		docs, err := r.Get(ctx, refs)
		if err != nil {
			return nil, nil, err
		}
		if len(docs) != len(refs) {
			return nil, nil, fmt.Errorf("Get returned %d documents for %d names", len(docs), len(refs))
		}
		for i, p := range now {
			current, err1 := r.shown(docs[i])
			other, err2 := r.shown(docs[len(now)+i])
			if err := errors.Join(err1, err2); err != nil {
				return nil, nil, err
			}
			if d, same := r.same(p, current, other, st.Stage == Swapped); !same {
				open = append(open, pending{id: p.id, routing: p.routing, current: current.Version, other: other.Version, looked: true})
				differ = append(differ, d)
			}
		}
	}
	return open, differ, nil
}

// shown is a document as searches show it: no tombstone.
func (r Reindex) shown(d document.Doc) (document.Doc, error) {
	if r.MarkField == "" {
		return d, nil
	}
	mark, err := d.Mark(r.MarkField)
	d.Found = d.Found && mark.Deleted == ""
	return d, err
}

// same compares a document of both indices; the current one is the new index once
// they are swapped. The new index has an item in the version of the table's read,
// or a later one. The old index has the version of the last written change, which
// is lower after changes that did not change the document. A document that changes
// all the time is the same when each index has reached the other's version of the
// last look.
func (r Reindex) same(p pending, current, other document.Doc, swapped bool) (Difference, bool) {
	d := Difference{ID: p.id, Routing: p.routing, Current: current.Version, Other: other.Version}
	if !current.Found || !other.Found {
		return d, current.Found == other.Found
	}
	newer, older := other.Version, current.Version
	if swapped {
		newer, older = older, newer
	}
	same := false
	if r.NewBodies {
		same = r.MarkField != "" || newer >= older
	} else { // an item is read with its attributes in any order
		d.Path, same = docrules.Compare(current.Source, other.Source, r.MarkField)
	}
	if same {
		return d, true
	}
	d.Bodies = newer == older
	movesOn := p.looked && p.current > 0 && p.other > 0 && current.Version >= p.other && other.Version >= p.current
	return d, movesOn && !d.Bodies
}
