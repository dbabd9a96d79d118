package warehouse

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/examples/internal/kit"
	"github.com/sluicehq/sluice/item"
)

// onReleaseLine keeps the newest release line of a package.
func (w *Warehouse) onReleaseLine(ctx context.Context, rec *sluice.Record) error {
	fields := map[string]any{"previous_version": kit.Given(kit.Text(rec.New, "previous_version"))}
	return w.setNewest(ctx, "release_line_head", item.String("pkg", kit.Text(rec.New, "pkg")), kit.Text(rec.New, "version"), fields)
}

// setNewest sets fields of the item with the key, and its version, unless it
// has that version already or a newer one. A field that is nil is removed.
func (w *Warehouse) setNewest(ctx context.Context, table string, k item.Attribute, version string, fields map[string]any) error {
	if !semver.IsValid("v" + version) {
		return sluice.Permanent(errors.New("the version is no semantic version, such as 1.0.0"))
	}
	fields["version"] = version
	return w.change(ctx, table, item.Of(k), []string{"version"}, func(it sluice.Item) (map[string]any, error) {
		if had := kit.Text(it, "version"); had != "" && compareVersions(had, version) >= 0 {
			return nil, nil
		}
		return fields, nil
	})
}

// compareVersions orders semantic versions. Those that differ in their build
// metadata alone are equal by that, and ordered as text.
func compareVersions(a, b string) int {
	return cmp.Or(semver.Compare("v"+a, "v"+b), strings.Compare(a, b))
}
