package reindex

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/sluicehq/sluice/internal/backoff"
	"github.com/sluicehq/sluice/internal/docrules"
)

// Start creates the new index, makes all writers write to both, fills the new one
// from the table, and compares the two. Swap may follow. If it was stopped on the
// way, another call continues; an unfinished backfill starts over.
func (r Reindex) Start(ctx context.Context) (Comparison, error) {
	r = r.withDefaults()
	for {
		st, err := r.Status(ctx)
		if err != nil {
			return Comparison{}, err
		}
		if st.Stage != Idle && st.meta.Body != hash(r.Body) {
			return Comparison{}, fmt.Errorf("reindex: %s is %v, with an index that was made of another body: give that body, or abandon it first", r.Alias, st.Stage)
		}
		switch st.Stage {
		case Idle:
			err = r.create(ctx, st)
		case Preparing:
			err = r.writeBoth(ctx, st)
		case Filling:
			err = r.fill(ctx, st)
		case Filled:
			return r.compare(ctx, st)
		case Swapped:
			return Comparison{}, fmt.Errorf("reindex: %s is swapped already, to %s: finish it, or roll back", r.Alias, st.Current)
		}
		if err != nil {
			return Comparison{}, err
		}
	}
}

// create makes the new index. The alias by which writers learn of it, for
// deletions at first, is made with it.
func (r Reindex) create(ctx context.Context, st Status) error {
	body, err := r.body(st.Current)
	if err != nil {
		return err
	}
	n := number(r.Alias, st.Current)
	for range 1000 {
		n++
		index := numbered(r.Alias, n)
		r.Step("create index " + index)
		created, err := r.Cluster.Create(ctx, index, body)
		if err != nil || created {
			return wrap(err)
		}
		// It may be another process that has just made it, for the same end.
		if now, err := r.Status(ctx); err != nil || now.Stage != Idle || now.Current != st.Current {
			return err
		}
	}
	return fmt.Errorf("reindex: the indices up to %s are there, want a free name", numbered(r.Alias, n))
}

// body adds the alias and the mark to Body.
func (r Reindex) body(current string) ([]byte, error) {
	var body, mappings, aliases, meta map[string]json.RawMessage
	if err := json.Unmarshal(r.Body, &body); err != nil {
		return nil, fmt.Errorf("reindex: Body is no JSON object: %w", err)
	}
	for _, part := range []struct {
		of   map[string]json.RawMessage
		name string
		into *map[string]json.RawMessage
	}{{body, "mappings", &mappings}, {body, "aliases", &aliases}} {
		if raw, ok := part.of[part.name]; ok {
			if err := json.Unmarshal(raw, part.into); err != nil {
				return nil, fmt.Errorf("reindex: %q of Body: %w", part.name, err)
			}
		}
	}
	if len(aliases) > 0 {
		return nil, errors.New("reindex: Body has aliases: they would lead to two indices; want none, they are for Swap to move")
	}
	if raw, ok := mappings["_meta"]; ok {
		if err := json.Unmarshal(raw, &meta); err != nil {
			return nil, fmt.Errorf("reindex: _meta of Body: %w", err)
		}
	}
	put(&aliases, r.Alias+docrules.DeletesSuffix, struct{}{})
	put(&meta, markName, mark{Alias: r.Alias, From: current, Body: hash(r.Body), MarkField: r.MarkField})
	put(&mappings, "_meta", meta)
	put(&body, "mappings", mappings)
	put(&body, "aliases", aliases)
	return json.Marshal(body)
}

func put(m *map[string]json.RawMessage, name string, v any) {
	if *m == nil {
		*m = map[string]json.RawMessage{}
	}
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps of JSON, and a struct of strings
	}
	(*m)[name] = raw
}

// writeBoth waits until every writer deletes in both indices, and has them do
// all writes in both then.
func (r Reindex) writeBoth(ctx context.Context, st Status) error {
	if err := r.wait(ctx, "until all writers delete in both"); err != nil {
		return err
	}
	r.Step("write to both indices")
	return wrap(r.Cluster.Point(ctx,
		map[string]string{r.Alias + docrules.DeletesSuffix: st.Other},
		map[string]string{r.Alias + docrules.AlsoSuffix: st.Other}))
}

// fill waits until every writer writes to both indices, and reads the table
// then: docs/decisions/0007 proves that nothing is left out so.
func (r Reindex) fill(ctx context.Context, st Status) error {
	if err := r.wait(ctx, "until all writers write to both"); err != nil {
		return err
	}
	r.Step("fill " + st.Other)
	done, err := r.backfill(ctx, st.Other)
	if err != nil {
		return err
	}
	if done.Failed > 0 && !r.SkipFailed {
		return &IncompleteError{Index: st.Other, Failed: done.Failed}
	}
	r.Step("mark " + st.Other + " as filled")
	meta, found, err := r.Cluster.Meta(ctx, st.Other)
	if err != nil || !found {
		return errors.Join(wrap(err), fmt.Errorf("reindex: marking %s as filled: its mapping cannot be read, or is gone", st.Other))
	}
	st.meta.Filled = true
	put(&meta, markName, st.meta)
	return wrap(r.Cluster.SetMeta(ctx, st.Other, meta))
}

// wait waits for the writers: TTL, and a tenth for clocks that do not run alike.
func (r Reindex) wait(ctx context.Context, what string) error {
	d := r.TTL + r.TTL/10
	r.Step(fmt.Sprintf("wait %v %s", d, what))
	return backoff.Sleep(ctx, d)
}

func wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("reindex: %w", err)
}

func hash(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:8])
}

// number returns that of an index, or 0 for one without.
func number(alias, index string) int {
	digits, ok := strings.CutPrefix(index, alias+"-")
	n, err := strconv.ParseUint(digits, 10, 32)
	if !ok || err != nil || len(digits) != 6 {
		return 0
	}
	return int(n)
}

func numbered(alias string, n int) string { return fmt.Sprintf("%s-%06d", alias, n) }
