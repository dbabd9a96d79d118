package audit

import (
	"context"
	"fmt"
	"slices"

	"github.com/sluicehq/sluice/effect/document"
)

// leadsTo returns the indices that a name leads to. It asks once for each name:
// documents that were seen by one answer cannot be compared with another.
func (r *run) leadsTo(ctx context.Context, name string) ([]string, error) {
	if r.Behind == nil {
		return []string{name}, nil
	}
	r.naming.Lock()
	defer r.naming.Unlock()
	indices, known := r.behind[name]
	if known {
		return indices, nil
	}
	indices, err := r.lookUp(ctx, name)
	if err == nil {
		r.behind[name] = indices
	}
	return indices, err
}

func (r *run) lookUp(ctx context.Context, name string) ([]string, error) {
	indices, err := r.Behind(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("audit: reading what index %s leads to: %w", name, err)
	}
	if len(indices) == 0 {
		return []string{name}, nil
	}
	slices.Sort(indices)
	return indices, nil
}

// unmoved fails if a name now resolves to another index: the state of the former
// index would turn all documents of the current one into ghosts.
func (r *run) unmoved(ctx context.Context, name string) error {
	if r.Behind == nil {
		return nil
	}
	was, err := r.leadsTo(ctx, name)
	if err != nil {
		return err
	}
	is, err := r.lookUp(ctx, name)
	if err != nil {
		return err
	}
	if !slices.Equal(was, is) {
		return moved(name, was, is)
	}
	return nil
}

func moved(name string, was, is []string) error {
	return fmt.Errorf("audit: %s led to %v when the audit began, and leads to %v now: run it again", name, was, is)
}

// places are the documents that a ref may stand for, each with the name of its
// index.
func (r *run) places(ctx context.Context, ref document.Ref) ([]document.Ref, error) {
	indices, err := r.leadsTo(ctx, ref.Index)
	if err != nil {
		return nil, err
	}
	refs := make([]document.Ref, len(indices))
	for i, index := range indices {
		refs[i] = ref
		refs[i].Index = index
	}
	return refs, nil
}

// same reports whether two refs may stand for one document.
func (r *run) same(ctx context.Context, a, b document.Ref) (bool, error) {
	if a.ID != b.ID || a.Routing != b.Routing {
		return false, nil
	}
	if a.Index == b.Index {
		return true, nil
	}
	ofA, err := r.leadsTo(ctx, a.Index)
	if err != nil {
		return false, err
	}
	ofB, err := r.leadsTo(ctx, b.Index)
	return err == nil && slices.ContainsFunc(ofA, func(index string) bool { return slices.Contains(ofB, index) }), err
}

// wanted leaves out deletions of documents that another op writes, by whichever
// name of their index.
func (r *run) wanted(ctx context.Context, ops []document.Op) ([]document.Op, error) {
	var kept []document.Op
	for _, op := range ops {
		written := false
		for _, o := range ops {
			if op.Action != document.Delete || o.Action != document.Put {
				continue
			}
			same, err := r.same(ctx, op.Ref(), o.Ref())
			if err != nil {
				return nil, err
			}
			written = written || same
		}
		if !written {
			kept = append(kept, op)
		}
	}
	return kept, nil
}
