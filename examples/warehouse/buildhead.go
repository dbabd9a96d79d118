package warehouse

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/examples/internal/kit"
	"github.com/sluicehq/sluice/item"
)

// buildEntry is a build that is, or may become, the head of its group.
type buildEntry struct {
	Created string `dynamodbav:"create_date" json:"create_date,omitempty"`
	ID      string `dynamodbav:"build_id" json:"build_id"`
	Version string `dynamodbav:"version" json:"version"`
}

func (a buildEntry) compare(b buildEntry) int {
	x, _ := parseDate(a.Created) // they were read before they became entries
	y, _ := parseDate(b.Created)
	return cmp.Or(x.compare(y), strings.Compare(a.ID, b.ID))
}

// entryOf returns the entry of a build, or an error when it can be none.
func entryOf(it sluice.Item) (buildEntry, error) {
	e := buildEntry{Created: kit.Text(it, "create_date"), ID: kit.Text(it, "build_id"), Version: kit.Text(it, "version")}
	k, err := join(kit.Text(it, "name"), kit.Text(it, "env"), e.Version)
	if err != nil {
		return e, err
	}
	if k != kit.Text(it, "key") || e.ID == "" {
		return e, sluice.Permanent(errors.New("a build needs a build_id, and the key name!env!version"))
	}
	_, err = parseDate(e.Created)
	return e, err
}

// entryAttributes are those of a build that its entry is made of.
var entryAttributes = []string{"key", "name", "env", "version", "build_id", "create_date"}

// headAttributes are those of a build that its head has, too.
var headAttributes = []string{"name", "env", "version", "build_id", "previous_build_id", "rollback_build_ids",
	"cdn_url", "fingerprints", "artifacts", "recommended"}

// onBuild keeps the head of a group: the builds of a package in an environment and
// a locale. The record says only which build has changed; what it is now is read
// again, so that a record that comes late, or twice, brings back nothing.
func (w *Warehouse) onBuild(ctx context.Context, rec *sluice.Record) error {
	parts := strings.Split(kit.Text(rec.Keys, "key"), separator)
	if len(parts) != 3 {
		return sluice.Permanent(errors.New("the key of a build is not its name!env!version"))
	}
	for {
		g := group{w: w, name: parts[0], env: parts[1], locale: kit.Text(rec.Keys, "locale"), read: make(map[string]sluice.Item)}
		if err := g.reconcile(ctx, parts[2]); !dynamo.IsCondition(err) {
			return err
		}
		// The head, or a build that it rests on, has changed meanwhile: look again.
	}
}

// group is one look at the builds of a package in an environment and a locale.
type group struct {
	w                 *Warehouse
	name, env, locale string

	row     sluice.Item            // of build_head, as it was found
	before  []buildEntry           // its history
	history []buildEntry           // as it is to be
	read    map[string]sluice.Item // builds by version, read consistently; absent ones, too
}

// reconcile brings the head up to date after the build of a version has changed.
//
// The head remembers the 16 largest builds, so that the next largest is known when
// the largest is deleted. The index of builds fills a history that is not there
// yet: the builds may be older than the head. It also fills up the history after a
// deletion: the index lags, by less than it takes to delete 16 builds. Each build
// that the index finds, and each head, is read again from the table.
func (g *group) reconcile(ctx context.Context, version string) error {
	if err := g.readRow(ctx); err != nil {
		return err
	}
	if len(g.history) == 0 {
		if err := g.refill(ctx); err != nil {
			return err
		}
	}
	if err := g.replace(ctx, version, true); err != nil {
		return err
	}
	for len(g.history) > 0 { // until the largest is as it is known
		last := g.history[len(g.history)-1]
		if err := g.replace(ctx, last.Version, false); err != nil {
			return err
		}
		if len(g.history) > 0 && g.history[len(g.history)-1] == last {
			break
		}
	}
	return g.write(ctx)
}

func (g *group) readRow(ctx context.Context) (err error) {
	if g.row, err = g.w.d.Store.Get(ctx, g.w.table("build_head"), g.rowKey()); err != nil || !g.row.Exists() {
		return err
	}
	var row struct {
		History []buildEntry `dynamodbav:"history"`
	}
	if err := g.row.Decode(&row); err != nil {
		return sluice.Permanent(fmt.Errorf("the head of the build: %w", err))
	}
	g.before, g.history = row.History, slices.Clone(row.History)
	return nil
}

// replace puts the current build of a version into the history, or removes it. It
// also removes a build that cannot be a head; if that build is the changed one,
// replace returns an error.
func (g *group) replace(ctx context.Context, version string, changed bool) error {
	it, err := g.build(ctx, version)
	if err != nil {
		return err
	}
	e, err := entryOf(it)
	if err != nil && it.Exists() && changed {
		return err
	}
	there := err == nil && it.Exists()
	i := slices.IndexFunc(g.history, func(o buildEntry) bool { return o.Version == version })
	switch {
	case i < 0:
	case there && g.history[i] == e:
		return nil
	default:
		sinks := !there || e.compare(g.history[i]) < 0
		g.history = slices.Delete(g.history, i, i+1)
		if sinks {
			if err := g.refill(ctx); err != nil {
				return err
			}
		}
	}
	if there {
		g.insert(e)
	}
	return nil
}

func (g *group) insert(e buildEntry) {
	if i, there := slices.BinarySearchFunc(g.history, e, buildEntry.compare); !there {
		g.history = slices.Insert(g.history, i, e)
	}
	g.history = g.history[max(0, len(g.history)-historyLength):]
}

// refill takes builds that the index finds into the history, the largest ones.
func (g *group) refill(ctx context.Context) error {
	var found []buildEntry
	q := dynamo.Query{
		Table: g.w.table("build"), Index: buildIndex, Partition: item.String("name", g.name),
		Sort: dynamo.Sort{Op: "=", Key: item.String("env", g.env)}, Attributes: []string{"key", "locale", "build_id", "create_date"},
	}
	for it, err := range dynamo.All(ctx, g.w.d.Store.Query, q) {
		if err != nil {
			return err
		}
		if kit.Text(it, "locale") == g.locale {
			found = append(found, buildEntry{kit.Text(it, "create_date"), kit.Text(it, "build_id"), strings.TrimPrefix(kit.Text(it, "key"), g.name+separator+g.env+separator)})
		}
	}
	slices.SortFunc(found, func(a, b buildEntry) int { return b.compare(a) })
	for _, e := range found {
		if slices.ContainsFunc(g.history, func(o buildEntry) bool { return o.Version == e.Version }) {
			continue
		}
		if len(g.history) == historyLength && e.compare(g.history[0]) < 0 {
			break
		}
		it, err := g.build(ctx, e.Version)
		if err != nil {
			return err
		}
		if e, err = entryOf(it); it.Exists() && err == nil { // it still exists, and no record of it is parked
			g.insert(e)
		}
	}
	return nil
}

// build reads the build of a version consistently; the absent item if there is
// none.
func (g *group) build(ctx context.Context, version string) (sluice.Item, error) {
	if it, done := g.read[version]; done {
		return it, nil
	}
	it, err := g.w.d.Store.Get(ctx, g.w.table("build"), g.buildKey(version))
	if err == nil {
		g.read[version] = it
	}
	return it, err
}

// write writes the head, on condition that the head is as it was read, and so are
// the builds that were read for it. The condition on a build compares what the head
// has of it: a build may change and change back, and the records of both changes
// find the head right and write nothing.
func (g *group) write(ctx context.Context) error {
	table := g.w.table("build_head")
	var op dynamo.Op
	if len(g.history) == 0 {
		if !g.row.Exists() {
			return nil
		}
		op = dynamo.Delete(table, g.rowKey())
	} else {
		fields := g.fields()
		if has(g.row, fields) {
			return nil
		}
		rev, _ := kit.Number(g.row, "rev")
		fields["rev"] = rev + 1
		op = kit.Set(dynamo.Update(table, g.rowKey(), ""), fields)
	}
	// A head that was deleted and made again counts rev anew: with the history it
	// is the same only if the builds are.
	ops := []dynamo.Op{kit.Same(op, g.row, "key", "rev", "history")}
	for version, it := range g.read {
		of := func(e buildEntry) bool { return e.Version == version }
		if !slices.ContainsFunc(g.before, of) && !slices.ContainsFunc(g.history, of) {
			continue
		}
		names := entryAttributes
		if n := len(g.history); n > 0 && of(g.history[n-1]) {
			names = append(slices.Clone(headAttributes), "key", "create_date")
		}
		ops = append(ops, kit.Same(dynamo.Check(g.w.table("build"), g.buildKey(version), ""), it, names...))
	}
	return g.w.d.Store.Transact(ctx, ops...)
}

// fields are those of the head: its build's, and the dates of the builds that it
// remembers.
func (g *group) fields() map[string]any {
	head := g.read[g.history[len(g.history)-1].Version]
	fields := map[string]any{"history": list(g.history)}
	for _, name := range headAttributes {
		fields[name] = nil
		if v, ok := head.Lookup(name); ok {
			fields[name] = v
		}
	}
	var dates span
	for _, e := range g.history {
		d, _ := parseDate(e.Created)
		dates = dates.with(d)
	}
	dates.fields(fields)
	return fields
}

func (g *group) rowKey() sluice.Item {
	return item.Of(item.String("key", g.name+separator+g.env), item.String("locale", g.locale))
}

func (g *group) buildKey(version string) sluice.Item {
	return item.Of(item.String("key", g.name+separator+g.env+separator+version), item.String("locale", g.locale))
}
