package audit

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluicehq/sluice/effect/document"
)

const (
	defaultDeletes = 1000 // ghosts that a run may delete
	defaultPercent = 5    // of the documents
)

// BrakeError says that no ghost may be deleted, because there are too many. The
// rules are those of [Audit.MaxDeletes].
type BrakeError struct {
	Ghosts    int64 `json:"ghosts"`           // that were confirmed
	Unread    int64 `json:"unread,omitempty"` // without an item too, and too many to look into
	Documents int64 `json:"documents"`        // that the index had: these, and those with an item
	Allowed   int64 `json:"allowed"`          // how many may be deleted

	Empty       bool `json:"empty,omitempty"`       // no document has an item
	MostlyEmpty bool `json:"mostlyEmpty,omitempty"` // more than half of the documents have no item
}

// Error says why, and what to do.
func (e *BrakeError) Error() string {
	are := "are ghosts"
	if e.Ghosts == 1 {
		are = "is a ghost"
	}
	text := fmt.Sprintf("no document is deleted: %d of %d %s", e.Ghosts, e.Documents, are)
	if e.Unread > 0 {
		text += fmt.Sprintf(", and %d more have no item that was found", e.Unread)
	}
	switch {
	case e.Empty:
		return text + ", and the table has no item for any of them; check the table's name, the account and the Region"
	case e.MostlyEmpty:
		return text + ", more than half; check the table's name, the account and the Region, or build the index anew"
	}
	return text + fmt.Sprintf(", and %d may be deleted; look at them first", e.Allowed)
}

// ghost is a confirmed ghost that waits until all are known.
type ghost struct {
	drift Drift
	doc   document.Doc
}

// brake holds ghosts back until all of them are known.
type brake struct {
	held     []ghost
	ghosts   int64
	homeless int64 // ghosts that no item asks to delete
	unread   int64 // documents that no scan gave, and that do not fit into memory
	over     bool  // more than MaxDeletes: no further one is held
}

var errBrake = errors.New("too many documents would be deleted")

// hold takes in a confirmed ghost. homeless says that no item asks to delete it.
func (r *run) hold(d Drift, doc document.Doc, homeless bool) {
	foreign := r.Foreign != nil && r.Foreign(doc)
	r.mu.Lock()
	defer r.mu.Unlock()
	if foreign {
		r.result.Foreign++
		return
	}
	b := &r.brake
	b.ghosts++
	if homeless {
		b.homeless++
	}
	switch {
	case r.Write == nil:
		r.foundLocked(d)
	case b.over:
		d.Err = errBrake
		r.foundLocked(d)
	default:
		if r.Marks == nil {
			doc.Source = nil
		}
		b.held = append(b.held, ghost{d, doc})
		if b.over = b.ghosts > r.mostDeletes(); b.over {
			r.leave(errBrake)
		}
	}
}

// leave reports the held ghosts, which stay for a reason. The caller holds the
// lock.
func (r *run) leave(reason error) {
	for _, g := range r.brake.held {
		g.drift.Err = reason
		r.foundLocked(g.drift)
	}
	r.brake.held = nil
}

// mostDeletes is the number of ghosts that may be deleted, whatever their share.
func (r *run) mostDeletes() int64 {
	if r.MaxDeletes > 0 {
		return int64(r.MaxDeletes)
	}
	return defaultDeletes
}

// verdict says why the ghosts may not be deleted; nil when they may.
func (r *run) verdict() *BrakeError {
	b := &r.brake
	// Only documents that the audit knows to have an item are beside the ghosts. The
	// items of another table are missing in the index, and a repair has written them;
	// that of many documents nothing is known says nothing of the table.
	had := r.result.Documents - r.result.Missing
	e := &BrakeError{Ghosts: b.ghosts, Unread: b.unread, Documents: had + b.ghosts + b.unread, Allowed: r.mostDeletes()}
	if r.MaxDeletes == 0 {
		e.Allowed = min(e.Allowed, max(1, e.Documents*defaultPercent/100))
	}
	if !r.TrustTables {
		homeless := b.homeless + b.unread
		e.Empty = homeless > 0 && had == 0
		e.MostlyEmpty = !e.Empty && 2*homeless > e.Documents
	}
	if e.Empty || e.MostlyEmpty || b.ghosts > e.Allowed {
		return e
	}
	return nil
}

// release deletes the held ghosts, unless there are too many.
func (r *run) release(ctx context.Context) error {
	r.result.Brake = r.verdict()
	if r.Write == nil {
		return nil
	}
	if r.result.Brake != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.leave(errBrake)
		return fmt.Errorf("audit: %w", r.result.Brake)
	}
	for len(r.brake.held) > 0 {
		g := r.brake.held[0]
		err := r.write(ctx, r.remedy(g.drift, nil, g.doc))
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		g.drift.Err, g.drift.Repaired = err, err == nil
		r.found(g.drift)
		r.brake.held = r.brake.held[1:]
	}
	return nil
}
