package warehouse

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/mod/semver"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/examples/internal/kit"
	"github.com/sluicehq/sluice/item"
)

// Status returns the status of a build; false when nothing is known of it.
func (w *Warehouse) Status(ctx context.Context, pkg, env, version string) (Status, bool, error) {
	return one[Status](ctx, w, "status", pkg, env, version)
}

// one reads an item by its key, which is made of parts; false if the table lacks it.
func one[T any](ctx context.Context, w *Warehouse, table string, parts ...string) (v T, found bool, err error) {
	k, err := join(parts...)
	if err != nil {
		return v, false, err
	}
	return kit.One[T](ctx, w.d.Store, w.table(table), key(k))
}

// all reads the items of a partition, whose key is made of parts.
func all[T any](ctx context.Context, w *Warehouse, table string, parts ...string) ([]T, error) {
	k, err := join(parts...)
	if err != nil {
		return nil, err
	}
	return kit.All[T](ctx, w.d.Store, dynamo.Query{Table: w.table(table), Partition: item.String("key", k)})
}

// Versions returns the versions of a package from one to another, both
// included, the oldest first; an empty bound is none. Versions are semantic
// ones: 1.10.0 comes after 1.9.0, although the table's keys stand otherwise.
func (w *Warehouse) Versions(ctx context.Context, name, from, to string) ([]Version, error) {
	for _, bound := range []string{from, to} {
		if bound != "" && !semver.IsValid("v"+bound) {
			return nil, fmt.Errorf("%q is no semantic version, such as 1.0.0", bound)
		}
	}
	all, err := kit.All[Version](ctx, w.d.Store, dynamo.Query{Table: w.table("version"), Partition: item.String("name", name)})
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(v Version) bool {
		return from != "" && semver.Compare("v"+v.Version, "v"+from) < 0 || to != "" && semver.Compare("v"+v.Version, "v"+to) > 0
	})
	slices.SortFunc(all, func(a, b Version) int {
		return compareVersions(a.Version, b.Version)
	})
	return all, nil
}

// Builds returns the builds of a version in all locales, by locale.
func (w *Warehouse) Builds(ctx context.Context, name, env, version string) ([]Build, error) {
	return all[Build](ctx, w, "build", name, env, version)
}

// BuildFile returns the file with a fingerprint; false when there is none.
func (w *Warehouse) BuildFile(ctx context.Context, fingerprint string) (f BuildFile, found bool, err error) {
	return kit.One[BuildFile](ctx, w.d.Store, w.table("build_file"), item.Of(item.String("fingerprint", fingerprint)))
}

// ReleaseLine returns a release line with its dependents; false when there is
// none.
func (w *Warehouse) ReleaseLine(ctx context.Context, pkg, version string) (l ReleaseLine, found bool, err error) {
	if l, found, err = one[ReleaseLine](ctx, w, "release_line", pkg, version); err != nil || !found {
		return l, false, err
	}
	l.Dependents, err = all[ReleaseLineDependent](ctx, w, "release_line_dep", pkg, version)
	return l, err == nil, err
}

// Events returns a page of up to limit events of a build in the order of
// [EventID.Compare], and where the next page begins. after is "" for the first
// page, and next is "" after the last. A limit of 0 is all events. after must be
// an id, or that of an event of the build.
//
// The table sorts events by the text of their ids. So a page costs a read of all
// events of the build, of which at most two pages are in memory. Ids without a
// time come last.
func (w *Warehouse) Events(ctx context.Context, pkg, env, version string, limit int, after string) (events []StatusEvent, next string, err error) {
	k, err := join(pkg, env, version)
	if err != nil {
		return nil, "", err
	}
	_, bad := ParseEventID(after)
	byID := func(a, b StatusEvent) int { return compareIDs(a.ID, b.ID) }
	more := false
	page := func() {
		if slices.SortFunc(events, byID); limit > 0 && len(events) > limit {
			events, more = events[:limit], true
		}
	}
	q := dynamo.Query{Table: w.table("status_event"), Partition: item.String("key", k)}
	for e, err := range kit.Rows[StatusEvent](ctx, w.d.Store, q) {
		if err != nil {
			return nil, "", err
		}
		if after != "" && compareIDs(e.ID, after) <= 0 {
			if e.ID == after {
				bad = nil // a parked event has it
			}
			continue
		}
		if events = append(events, e); limit > 0 && len(events) == 2*limit {
			page()
		}
	}
	if after != "" && bad != nil {
		return nil, "", fmt.Errorf("after is neither an id nor that of an event of the build: %w", bad)
	}
	if page(); more {
		next = events[limit-1].ID
	}
	return events, next, nil
}

// Packages returns a page of up to limit packages (0 is the service's page size),
// in no order, and where the next page begins. after is "" for the first page, and
// next is "" after the last. A package that exists all the while is in one page.
func (w *Warehouse) Packages(ctx context.Context, limit int, after string) (packages []Package, next string, err error) {
	if w.d.Scan == nil {
		return nil, "", errors.New("warehouse: Packages needs Deps.Scan")
	}
	var begin sluice.Item
	if after != "" {
		begin = item.Of(item.String("name", after))
	}
	page, err := w.d.Scan(ctx, w.table("package"), limit, begin)
	if err != nil {
		return nil, "", err
	}
	packages, err = kit.DecodeAll[Package](w.table("package"), page.Items)
	return packages, kit.Text(page.Next, "name"), err
}

// Package returns a package; false when there is none.
func (w *Warehouse) Package(ctx context.Context, name string) (Package, bool, error) {
	return kit.One[Package](ctx, w.d.Store, w.table("package"), item.Of(item.String("name", name)))
}

// Heads returns the head builds of a package in an environment, by locale.
func (w *Warehouse) Heads(ctx context.Context, name, env string) ([]BuildHead, error) {
	return all[BuildHead](ctx, w, "build_head", name, env)
}

// StatusHead returns the last queued version of a package in an environment; false
// if there is none.
func (w *Warehouse) StatusHead(ctx context.Context, pkg, env string) (StatusHead, bool, error) {
	return one[StatusHead](ctx, w, "status_head", pkg, env)
}

// ReleaseLineHead returns the newest release line of a package; false when there
// is none.
func (w *Warehouse) ReleaseLineHead(ctx context.Context, pkg string) (ReleaseLineHead, bool, error) {
	return kit.One[ReleaseLineHead](ctx, w.d.Store, w.table("release_line_head"), item.Of(item.String("pkg", pkg)))
}

// Dependents returns the names of the packages that depend on one, in order.
func (w *Warehouse) Dependents(ctx context.Context, name string) ([]string, error) {
	row, _, err := kit.One[struct {
		Dependents []string `dynamodbav:"dependents"`
	}](ctx, w.d.Store, w.table("dependent"), item.Of(item.String("name", name)))
	slices.Sort(row.Dependents)
	return row.Dependents, err
}

// DependentOf returns the first dependency of a package by name; "" when it has
// none.
func (w *Warehouse) DependentOf(ctx context.Context, pkg string) (string, error) {
	row, _, err := kit.One[struct {
		Of string `dynamodbav:"dependent_of"`
	}](ctx, w.d.Store, w.table("dependent_of"), item.Of(item.String("pkg", pkg)))
	return row.Of, err
}
