package warehouse

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/examples/internal/kit"
	"github.com/sluicehq/sluice/item"
)

// packageFields maps fields of package.json to attributes of a package and their
// kinds. SS is an array of strings there. Two fields may map to one attribute: the
// first that fits is used.
var packageFields = []struct {
	field, attribute string
	kind             item.Kind
}{
	{"description", "description", item.S},
	{"main", "main", item.S},
	{"gitHead", "git_head", item.S},
	{"keywords", "keywords", item.SS},
	{"bundleDependencies", "bundled_dependencies", item.SS},
	{"bundledDependencies", "bundled_dependencies", item.SS},
	{"distTags", "dist_tags", item.M},
	{"dist-tags", "dist_tags", item.M},
	{"envs", "envs", item.M},
	{"metadata", "metadata", item.M},
	{"config", "config", item.M},
	{"repository", "repository", item.M},
	{"dependencies", "dependencies", item.M},
	{"devDependencies", "dev_dependencies", item.M},
	{"peerDependencies", "peer_dependencies", item.M},
	{"optionalDependencies", "optional_dependencies", item.M},
}

// attributesOf returns the attributes of a package by its package.json: all that
// there are, nil where it has none. What has no attribute, or is of another kind
// than its attribute, is in extended under its own name.
func attributesOf(manifest sluice.Item) map[string]any {
	attributes := map[string]any{"extended": nil}
	for _, f := range packageFields {
		attributes[f.attribute] = nil
	}
	taken := []string{"name", "version"} // these are the item's own
	for _, f := range packageFields {
		v, _ := manifest.Lookup(f.field)
		if a := fit(v, f.field, f.kind); a != nil && attributes[f.attribute] == nil {
			attributes[f.attribute] = a
			taken = append(taken, f.field)
		}
	}
	for name, v := range manifest.All() {
		if v.Kind() == item.NULL {
			taken = append(taken, name)
		}
	}
	if rest := manifest.Without(taken...); rest.Len() > 0 {
		attributes["extended"] = rest
	}
	return attributes
}

// fit returns the value of a field as an attribute of a kind, nil when it cannot
// be one.
func fit(v item.Value, field string, kind item.Kind) any {
	switch {
	case v.Kind() == kind:
		return v
	case kind == item.SS && v.Kind() == item.L:
		var set dynamo.Strings
		for e := range v.List() {
			if e.Kind() != item.S || e.Str() == "" {
				return nil
			}
			set = append(set, e.Str())
		}
		if slices.Sort(set); len(set) > 0 {
			return slices.Compact(set)
		}
	case field == "repository" && v.Kind() == item.S: // npm's short form
		return item.Of(item.String("type", "git"), item.String("url", v.Str()))
	}
	return nil
}

// onVersion takes a version's package.json into its package, if it is the
// newest, and into what depends on what.
func (w *Warehouse) onVersion(ctx context.Context, rec *sluice.Record) error {
	name, version := kit.Text(rec.New, "name"), kit.Text(rec.New, "version")
	manifest, err := item.FromJSON([]byte(kit.Text(rec.New, "value")))
	if err != nil {
		return sluice.Permanent(fmt.Errorf("value: %w", err))
	}
	dependencies, given := manifest.Lookup("dependencies")
	if given && dependencies.Kind() != item.M && dependencies.Kind() != item.NULL {
		return sluice.Permanent(errors.New("value: its dependencies are no object"))
	}
	if err := w.setNewest(ctx, "package", item.String("name", name), version, attributesOf(manifest)); err != nil {
		return err
	}
	on := slices.Sorted(maps.Keys(maps.Collect(dependencies.Map().All())))
	for _, d := range on {
		err := w.d.Store.Write(ctx, dynamo.Update(w.table("dependent"), item.Of(item.String("name", d)), "ADD dependents :one").
			Value(":one", dynamo.Strings{name}))
		if err != nil {
			return err
		}
	}
	of := map[string]any{"dependent_of": nil}
	if len(on) > 0 {
		of["dependent_of"] = on[0]
	}
	return w.setNewest(ctx, "dependent_of", item.String("pkg", name), version, of)
}
