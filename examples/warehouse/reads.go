package warehouse

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"golang.org/x/mod/semver"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/dynamo"
	"github.com/sluicehq/sluice/item"
)

// Status is what is known of a build.
type Status struct {
	Key      string `dynamodbav:"key"` // pkg!env!version
	Package  string `dynamodbav:"pkg"`
	Env      string `dynamodbav:"env"`
	Version  string `dynamodbav:"version"`
	Previous string `dynamodbav:"previous_version"`
	Total    int64  `dynamodbav:"total"` // of locales
	Error    bool   `dynamodbav:"error"`
	Complete bool   `dynamodbav:"complete"`
}

// Build is one build of a package in one locale.
type Build struct {
	Key          string   `dynamodbav:"key"` // name!env!version
	Locale       string   `dynamodbav:"locale"`
	ID           string   `dynamodbav:"build_id"`
	PreviousID   string   `dynamodbav:"previous_build_id"`
	Name         string   `dynamodbav:"name"`
	Env          string   `dynamodbav:"env"`
	Version      string   `dynamodbav:"version"`
	Created      string   `dynamodbav:"create_date"` // RFC 3339
	Fingerprints []string `dynamodbav:"fingerprints"`
	Artifacts    []string `dynamodbav:"artifacts"`
}

// Version is one version of a package.
type Version struct {
	Name    string `dynamodbav:"name"`
	Version string `dynamodbav:"version"`
	Value   string `dynamodbav:"value"` // package.json
}

// BuildFile is one file of a build.
type BuildFile struct {
	Fingerprint string `dynamodbav:"fingerprint"`
	BuildID     string `dynamodbav:"build_id"`
	URL         string `dynamodbav:"url"`
	Filename    string `dynamodbav:"filename"`
}

// ReleaseLine is one released version with those that follow it.
type ReleaseLine struct {
	Key        string   `dynamodbav:"key"` // pkg!version
	Package    string   `dynamodbav:"pkg"`
	Version    string   `dynamodbav:"version"`
	Previous   string   `dynamodbav:"previous_version"`
	Dependents []string `dynamodbav:"-"` // in order
}

// Status returns the status of a build; false when nothing is known of it.
func (w *Warehouse) Status(ctx context.Context, pkg, env, version string) (s Status, found bool, err error) {
	k, err := join(pkg, env, version)
	if err != nil {
		return s, false, err
	}
	return one[Status](ctx, w, "status", key(k))
}

// Versions returns the versions of a package from one to another, both
// included, the oldest first; an empty bound is none. Versions are semantic
// ones: 1.10.0 comes after 1.9.0, although the table's keys stand otherwise.
func (w *Warehouse) Versions(ctx context.Context, name, from, to string) ([]Version, error) {
	all, err := every[Version](ctx, w, dynamo.Query{Table: w.table("version"), Partition: item.String("name", name)})
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(v Version) bool {
		return from != "" && semver.Compare("v"+v.Version, "v"+from) < 0 || to != "" && semver.Compare("v"+v.Version, "v"+to) > 0
	})
	slices.SortFunc(all, func(a, b Version) int {
		return cmp.Or(semver.Compare("v"+a.Version, "v"+b.Version), cmp.Compare(a.Version, b.Version))
	})
	return all, nil
}

// Builds returns the builds of a version in all locales, by locale.
func (w *Warehouse) Builds(ctx context.Context, name, env, version string) ([]Build, error) {
	k, err := join(name, env, version)
	if err != nil {
		return nil, err
	}
	return every[Build](ctx, w, dynamo.Query{Table: w.table("build"), Partition: item.String("key", k)})
}

// BuildFile returns the file with a fingerprint; false when there is none.
func (w *Warehouse) BuildFile(ctx context.Context, fingerprint string) (f BuildFile, found bool, err error) {
	return one[BuildFile](ctx, w, "build_file", item.Of(item.String("fingerprint", fingerprint)))
}

// ReleaseLine returns a release line with its dependents; false when there is
// none.
func (w *Warehouse) ReleaseLine(ctx context.Context, pkg, version string) (l ReleaseLine, found bool, err error) {
	k, err := join(pkg, version)
	if err != nil {
		return l, false, err
	}
	if l, found, err = one[ReleaseLine](ctx, w, "release_line", key(k)); err != nil || !found {
		return l, false, err
	}
	for it, err := range dynamo.All(ctx, w.store.Query, dynamo.Query{Table: w.table("release_line_dep"), Partition: item.String("key", k)}) {
		if err != nil {
			return l, false, err
		}
		l.Dependents = append(l.Dependents, text(it, "dependent"))
	}
	return l, true, nil
}

// Events returns the events of a build in their order.
func (w *Warehouse) Events(ctx context.Context, pkg, env, version string) ([]StatusEvent, error) {
	k, err := join(pkg, env, version)
	if err != nil {
		return nil, err
	}
	return every[StatusEvent](ctx, w, dynamo.Query{Table: w.table("status_event"), Partition: item.String("key", k)})
}

func one[T any](ctx context.Context, w *Warehouse, table string, k sluice.Item) (v T, found bool, err error) {
	it, err := w.store.Get(ctx, w.table(table), k)
	if err != nil || !it.Exists() {
		return v, false, err
	}
	if err := it.Decode(&v); err != nil {
		return v, false, fmt.Errorf("table %s, %s: %w", w.table(table), k.AppendJSON(nil), err)
	}
	return v, true, nil
}

func every[T any](ctx context.Context, w *Warehouse, q dynamo.Query) ([]T, error) {
	var all []T
	for it, err := range dynamo.All(ctx, w.store.Query, q) {
		if err != nil {
			return nil, err
		}
		var v T
		if err := it.Decode(&v); err != nil {
			return nil, fmt.Errorf("table %s: %w", q.Table, err)
		}
		all = append(all, v)
	}
	return all, nil
}
