package warehouse

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/dynamo"
	"github.com/sluicehq/sluice/item"
)

// packageFields are what a package takes from its newest version's
// package.json.
var packageFields = []string{"description", "keywords", "main", "license", "repository", "config",
	"dependencies", "devDependencies", "peerDependencies", "optionalDependencies"}

// onVersion takes a version's package.json into its package, if it is the
// newest, and into what depends on what.
func (w *Warehouse) onVersion(ctx context.Context, rec *sluice.Record) error {
	name, version := text(rec.New, "name"), text(rec.New, "version")
	value, err := item.FromJSON([]byte(text(rec.New, "value")))
	if err != nil {
		return sluice.Permanent(fmt.Errorf("version %s of %s: value: %w", version, name, err))
	}
	var manifest struct {
		Dependencies map[string]json.RawMessage `json:"dependencies"`
	}
	if err := json.Unmarshal([]byte(text(rec.New, "value")), &manifest); err != nil {
		return sluice.Permanent(fmt.Errorf("version %s of %s: value: %w", version, name, err))
	}
	fields := make(map[string]any)
	for _, f := range packageFields {
		fields[f] = nil
		if v, ok := value.Lookup(f); ok {
			fields[f] = v
		}
	}
	by := item.Of(item.String("name", name))
	if err := w.setNewest(ctx, "package", by, version, fields); err != nil {
		return err
	}
	dependencies := slices.Sorted(maps.Keys(manifest.Dependencies))
	for _, d := range dependencies {
		err := w.store.Write(ctx, dynamo.Update(w.table("dependent"), item.Of(item.String("name", d)), "ADD dependents :one").
			Value(":one", dynamo.Strings{name}))
		if err != nil {
			return err
		}
	}
	of := map[string]any{"dependent_of": nil}
	if len(dependencies) > 0 {
		of["dependent_of"] = dependencies[0]
	}
	return w.setNewest(ctx, "dependent_of", item.Of(item.String("pkg", name)), version, of)
}

// onReleaseLine keeps the newest release line of a package.
func (w *Warehouse) onReleaseLine(ctx context.Context, rec *sluice.Record) error {
	fields := map[string]any{"previous_version": nil}
	if previous := text(rec.New, "previous_version"); previous != "" {
		fields["previous_version"] = previous
	}
	return w.setNewest(ctx, "release_line_head", item.Of(item.String("pkg", text(rec.New, "pkg"))), text(rec.New, "version"), fields)
}

// setNewest sets fields of the item with the key, and its version, unless it
// has that version already or a newer one. A field that is nil is removed.
func (w *Warehouse) setNewest(ctx context.Context, table string, k sluice.Item, version string, fields map[string]any) error {
	if !semver.IsValid("v" + version) {
		return sluice.Permanent(fmt.Errorf("version %q of %s is no semantic version", version, k.AppendJSON(nil)))
	}
	for {
		it, err := w.store.Get(ctx, w.table(table), k)
		if err != nil {
			return err
		}
		had := text(it, "version")
		if it.Exists() && had != "" && semver.Compare("v"+had, "v"+version) >= 0 {
			return nil
		}
		op := set(dynamo.Update(w.table(table), k, ""), version, fields)
		if had == "" {
			op = op.If("attribute_not_exists(version)")
		} else {
			op = op.If("version = :had").Value(":had", had)
		}
		if err := w.store.Write(ctx, op); !dynamo.IsCondition(err) {
			return err
		}
	}
}

// set makes the update of version and fields.
func set(op dynamo.Op, version string, fields map[string]any) dynamo.Op {
	sets, removes := []string{"version = :version"}, []string(nil)
	op = op.Value(":version", version)
	for i, name := range slices.Sorted(maps.Keys(fields)) {
		n := fmt.Sprintf("#f%d", i)
		op = op.Name(n, name)
		if fields[name] == nil {
			removes = append(removes, n)
			continue
		}
		sets = append(sets, fmt.Sprintf("%s = :f%d", n, i))
		op = op.Value(fmt.Sprintf(":f%d", i), fields[name])
	}
	op.Update = "SET " + strings.Join(sets, ", ")
	if removes != nil {
		op.Update += " REMOVE " + strings.Join(removes, ", ")
	}
	return op
}

// onBuild keeps the newest build of a package in an environment and a locale.
// A head cannot have its version in its key.
func (w *Warehouse) onBuild(ctx context.Context, rec *sluice.Record) error {
	var b Build
	if err := rec.New.Decode(&b); err != nil {
		return sluice.Permanent(err)
	}
	k, err := join(b.Name, b.Env)
	if err != nil {
		return err
	}
	if b.ID == "" || b.Locale == "" {
		return sluice.Permanent(errors.New("a build without build_id or locale"))
	}
	op := dynamo.Update(w.table("build_head"), item.Of(item.String("key", k), item.String("locale", b.Locale)),
		"SET build_id = :id, create_date = :date, version = :version").
		If("attribute_not_exists(build_id) OR create_date < :date OR create_date = :date AND build_id <= :id").
		Value(":id", b.ID).Value(":date", b.Created).Value(":version", b.Version)
	if b.PreviousID == "" {
		op.Update += " REMOVE previous_build_id"
	} else {
		op.Update += ", previous_build_id = :previous"
		op = op.Value(":previous", b.PreviousID)
	}
	return unless(w.store.Write(ctx, op))
}
