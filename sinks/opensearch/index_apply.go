package opensearch

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/sluicehq/sluice/internal/backoff"
	"github.com/sluicehq/sluice/internal/docrules"
)

const (
	templateFolder = "templates"
	indexFolder    = "indices"
)

// Apply makes the index templates and the indices that the files of fsys say,
// templates first, where they are not there. Several processes may do so at once.
// What is there and different is an error, or told to IndexOptions.Different; it is
// not changed. While a reindex is under way, either of its two indices may be what
// the file says.
func (c *Indices) Apply(ctx context.Context, fsys fs.FS, o IndexOptions) error {
	if err := o.validate(); err != nil {
		return err
	}
	o = o.withDefaults()
	templates, err := readFiles(fsys, o, templateFolder, "index_patterns", "template", "priority", "composed_of", "version", "_meta", "data_stream")
	if err != nil {
		return fmt.Errorf("opensearch: %w", err)
	}
	indices, err := readFiles(fsys, o, indexFolder, "settings", "mappings")
	if err != nil {
		return fmt.Errorf("opensearch: %w", err)
	}
	if len(templates)+len(indices) == 0 {
		return fmt.Errorf("opensearch: there is neither a file %s/*.json nor %s/*.json: is it the right folder?", templateFolder, indexFolder)
	}
	for _, each := range []struct {
		files []file
		apply func(context.Context, file, IndexOptions) (*difference, string, error)
	}{{templates, c.applyTemplate}, {indices, c.applyIndex}} {
		for _, f := range each.files {
			d, name, err := each.apply(ctx, f, o)
			switch {
			case err != nil:
				return fmt.Errorf("opensearch: %s: %w", f.path, err)
			case d == nil:
			case o.Different != nil:
				o.Different(d.error(f.path, name))
			default:
				return d.error(f.path, name)
			}
		}
	}
	return nil
}

// applyIndex makes the index behind an alias, or compares it.
func (c *Indices) applyIndex(ctx context.Context, f file, o IndexOptions) (*difference, string, error) {
	flat, err := settings(f.body)
	if err != nil {
		return nil, "", err
	}
	mappings, ok := f.body["mappings"].(map[string]any)
	if f.body["mappings"] != nil && !ok {
		return nil, "", fmt.Errorf("mappings: want an object")
	}
	behind, err := c.Behind(ctx, f.name, f.name+docrules.AlsoSuffix, f.name+docrules.DeletesSuffix)
	if err != nil {
		return nil, "", err
	}
	if len(behind[f.name]) == 0 {
		made, err := c.makeIndex(ctx, f, o, flat)
		if err != nil || made {
			return nil, "", err
		}
		// Somebody else has made it at the same time, with its alias.
		if behind, err = c.Behind(ctx, f.name); err != nil {
			return nil, "", err
		}
	}
	switch found := behind[f.name]; len(found) {
	case 0:
		return nil, "", fmt.Errorf("the alias %s does not exist, and the index %s-000001 does: give that index the alias, or delete it", f.name, f.name)
	case 1:
	default:
		return nil, "", fmt.Errorf("the alias %s leads to %d indices (%s), want one: remove the alias from each index that is not its own (POST /_aliases)", f.name, len(found), strings.Join(found, ", "))
	}
	index := behind[f.name][0]
	var first *difference
	for _, name := range append(append(behind[f.name], behind[f.name+docrules.AlsoSuffix]...), behind[f.name+docrules.DeletesSuffix]...) {
		d, err := c.diffIndex(ctx, name, o.complete(flat), mappings, o, o.Marks[f.name])
		if err != nil || d == nil {
			return nil, "", err
		}
		if first == nil {
			first = d
		}
	}
	return first, "index " + index, nil
}

// makeIndex makes the first index behind an alias, in one request with it.
func (c *Indices) makeIndex(ctx context.Context, f file, o IndexOptions, flat map[string]string) (made bool, err error) {
	body, alias := o.indexBody(f, flat), map[string]any{}
	if marks := o.Marks[f.name]; marks != nil && !marks.plain {
		alias["filter"] = marks.filter()
	}
	body["aliases"] = map[string]any{f.name: alias}
	text, err := json.Marshal(body)
	if err != nil {
		return false, err
	}
	return c.Create(ctx, f.name+"-000001", text)
}

// diffIndex compares an index with what a file says.
func (c *Indices) diffIndex(ctx context.Context, index string, flat map[string]string, mappings map[string]any, o IndexOptions, marks *Marks) (*difference, error) {
	if o.NoReplicas {
		delete(flat, replicas)
	}
	path := "/" + url.PathEscape(index)
	var have map[string]struct{ Settings map[string]any }
	if err := c.c.Call(ctx, http.MethodGet, path+"/_settings", nil, &have); err != nil {
		return nil, err
	}
	set, err := settings(map[string]any{"settings": have[index].Settings})
	if err != nil {
		return nil, err
	}
	if d := diffSettings(flat, set); d != nil {
		return d, nil
	}
	var mapping map[string]struct{ Mappings map[string]any }
	if err := c.c.Call(ctx, http.MethodGet, path+"/_mapping", nil, &mapping); err != nil {
		return nil, err
	}
	is, field := mapping[index].Mappings, ""
	if marks != nil && jsonObject(mappings["properties"])[marks.field] == nil {
		field = marks.field // whether it is there, Marks.Check says
	}
	delete(jsonObject(is["properties"]), field)
	var failed error
	full := sync.OnceValue(func() (fields map[string]map[string]any) {
		fields, failed = c.fullFields(ctx, path)
		return fields
	})
	d := diffMapping("mappings", "", mappings, is, func(field string) map[string]any { return full()[field] })
	return d, failed
}

// fullFields returns all parameters of all fields. It asks again for a while as long as
// nobody answers: no shard of a new index can answer yet.
func (c *Indices) fullFields(ctx context.Context, path string) (map[string]map[string]any, error) {
	var out map[string]struct {
		Mappings map[string]struct{ Mapping map[string]map[string]any }
	}
	for attempt := 1; ; attempt++ {
		err := c.c.Call(ctx, http.MethodGet, path+"/_mapping/field/*?include_defaults=true", nil, &out)
		if err == nil {
			break
		}
		if !isMissing(err) || attempt == 20 {
			return nil, err
		}
		if err := backoff.Sleep(ctx, 100*time.Millisecond); err != nil {
			return nil, err
		}
	}
	fields := map[string]map[string]any{}
	for _, index := range out {
		for name, field := range index.Mappings {
			for _, parameters := range field.Mapping {
				fields[name] = parameters
			}
		}
	}
	return fields, nil
}

// applyTemplate makes an index template, or compares it.
func (c *Indices) applyTemplate(ctx context.Context, f file, o IndexOptions) (*difference, string, error) {
	template, ok := f.body["template"].(map[string]any)
	if f.body["template"] != nil && !ok {
		return nil, "", fmt.Errorf("template: want an object")
	}
	flat, err := settings(template)
	if err != nil {
		return nil, "", fmt.Errorf("template.%w", err)
	}
	body, complete := maps.Clone(f.body), maps.Clone(template)
	if complete == nil {
		complete = map[string]any{}
	}
	complete["settings"] = o.complete(flat)
	body["template"] = complete

	have, err := c.template(ctx, f.name)
	if err == nil && have == nil {
		path := "/_index_template/" + url.PathEscape(f.name) + "?create=true"
		made := c.change(ctx, http.MethodPut, path, body)
		if made == nil {
			return nil, "", nil
		}
		// It may be refused because somebody else has made it at the same time.
		if have, err = c.template(ctx, f.name); err == nil && have == nil {
			err = made
		}
	}
	if err != nil {
		return nil, "", err
	}
	d, err := diffTemplate(body, have)
	return d, "index template " + f.name, err
}

// template returns an index template, or nil when there is none.
func (c *Indices) template(ctx context.Context, name string) (map[string]any, error) {
	var out struct {
		Templates []struct {
			Template map[string]any `json:"index_template"`
		} `json:"index_templates"`
	}
	err := c.c.Call(ctx, http.MethodGet, "/_index_template/"+url.PathEscape(name), nil, &out)
	switch {
	case isMissing(err):
		return nil, nil
	case err != nil:
		return nil, err
	case len(out.Templates) != 1:
		return nil, fmt.Errorf("%d templates are called %q, want one", len(out.Templates), name)
	}
	return out.Templates[0].Template, nil
}

func diffTemplate(want, have map[string]any) (*difference, error) {
	w, h := jsonObject(want["template"]), jsonObject(have["template"])
	is, err := settings(h)
	if err != nil {
		return nil, err
	}
	asked, _ := w["settings"].(map[string]string)
	if d := diffSettings(asked, is); d != nil {
		d.path = "template." + d.path
		return d, nil
	}
	for _, name := range []string{"mappings", "aliases"} {
		if d := diffWhole("template."+name, orEmpty(w[name]), orEmpty(h[name])); d != nil {
			return d, nil
		}
	}
	for _, name := range union(want, have) {
		if name == "template" || name == "composed_of" && want[name] == nil {
			continue
		}
		if d := diffWhole(name, want[name], have[name]); d != nil {
			return d, nil
		}
	}
	return nil, nil
}

func orEmpty(v any) any {
	if v == nil {
		return map[string]any{}
	}
	return v
}
