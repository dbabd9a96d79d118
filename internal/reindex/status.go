package reindex

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/sluicehq/sluice/internal/docrules"
)

// Stage says how far a reindex is.
type Stage uint8

const (
	Idle      Stage = iota // none, or finished
	Preparing              // deletions go to both indices
	Filling                // all writes do
	Filled                 // and the new index has all documents: Swap may come
	Swapped                // the alias leads to the new index, writes still go to both: Rollback or Finish may come
)

// String returns the stage in one lower-case word.
func (s Stage) String() string {
	return [...]string{Idle: "idle", Preparing: "preparing", Filling: "filling", Filled: "filled", Swapped: "swapped"}[s]
}

// MarshalText is for JSON.
func (s Stage) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Status is the cluster's state of an alias.
type Status struct {
	Alias   string `json:"alias"`
	Stage   Stage  `json:"stage"`
	Current string `json:"current"`         // the index behind the alias
	Other   string `json:"other,omitempty"` // the second index: of Swapped the old one, else the new one; empty when Idle

	meta  mark   // of the new index
	alias string // leads to Other
}

// mark is the mark of a new index, in _meta.sluice of its mapping.
type mark struct {
	Alias  string `json:"alias"`
	From   string `json:"from"` // the index that it is to succeed
	Body   string `json:"body"` // a hash of its definition
	Filled bool   `json:"filled,omitempty"`

	MarkField string `json:"markField,omitempty"` // of the Reindex that started it
}

const markName = "sluice"

// Status reads the cluster's state of the alias.
func (r Reindex) Status(ctx context.Context) (Status, error) {
	if r.TTL < 0 || r.Longest < 0 {
		return Status{}, fmt.Errorf("reindex: TTL is %v and Longest is %v, want 0 (the default) or above", r.TTL, r.Longest)
	}
	st := Status{Alias: r.Alias}
	also, deletes := r.Alias+docrules.AlsoSuffix, r.Alias+docrules.DeletesSuffix
	behind, err := r.Cluster.Behind(ctx, r.Alias, also, deletes)
	if err != nil {
		return st, fmt.Errorf("reindex: %w", err)
	}
	switch current := behind[r.Alias]; len(current) {
	case 1:
		st.Current = current[0]
	case 0:
		return st, fmt.Errorf("reindex: %s is no alias: want one that leads to an index such as %s; writers write to the alias", r.Alias, numbered(r.Alias, 1))
	default:
		return st, fmt.Errorf("reindex: the alias %s leads to %d indices %q, want one", r.Alias, len(current), current)
	}
	others := append(append([]string(nil), behind[also]...), behind[deletes]...)
	switch {
	case len(others) == 0:
		return st, nil
	case len(others) > 1 || others[0] == st.Current:
		return st, fmt.Errorf("reindex: the aliases %s and %s lead to %q besides %s, which no reindex does: remove them", also, deletes, others, st.Current)
	}
	st.Other, st.alias = others[0], deletes
	if len(behind[also]) > 0 {
		st.alias = also
	}
	return st, r.stage(ctx, &st)
}

// stage tells which of the two indices is the new one.
func (r Reindex) stage(ctx context.Context, st *Status) error {
	other, _, err := r.mark(ctx, st.Other)
	if err != nil {
		return err
	}
	if other.Alias == r.Alias && other.From == st.Current {
		st.meta = other
		switch {
		case st.alias == r.Alias+docrules.DeletesSuffix:
			st.Stage = Preparing
		case other.Filled:
			st.Stage = Filled
		default:
			st.Stage = Filling
		}
		return nil
	}
	current, _, err := r.mark(ctx, st.Current)
	if err != nil {
		return err
	}
	if current.Alias == r.Alias && current.From == st.Other && st.alias == r.Alias+docrules.AlsoSuffix {
		st.Stage, st.meta = Swapped, current
		return nil
	}
	return fmt.Errorf("reindex: the alias %s leads to %s, and neither it nor %s says in its mapping's _meta that it succeeds the other: no reindex made them; remove the alias", st.alias, st.Other, st.Current)
}

// mark reads the mark of an index; empty if it has none.
func (r Reindex) mark(ctx context.Context, index string) (m mark, found bool, err error) {
	meta, found, err := r.Cluster.Meta(ctx, index)
	if err != nil {
		return m, found, fmt.Errorf("reindex: %w", err)
	}
	if raw, ok := meta[markName]; ok {
		if err := json.Unmarshal(raw, &m); err != nil {
			return m, found, fmt.Errorf("reindex: _meta.%s of index %s: %w", markName, index, err)
		}
	}
	return m, found, nil
}
