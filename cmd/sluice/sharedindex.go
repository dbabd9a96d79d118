package main

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/docrules"
	"github.com/sluicehq/sluice/sinks/opensearch"
)

// reach finds out which templates of index names lead to one index, also by
// aliases.
type reach struct {
	behind func(ctx context.Context, name string) ([]string, error)

	mu    sync.Mutex
	known map[string][]string
}

// behind returns the indices behind an alias, and none for an index.
func behind(client *opensearch.Client) func(context.Context, string) ([]string, error) {
	cluster := client.Indices()
	return func(ctx context.Context, name string) ([]string, error) {
		found, err := cluster.Behind(ctx, name)
		return found[name], err
	}
}

// meet reports whether two templates may lead to one index.
func (r *reach) meet(ctx context.Context, a, b string) (bool, error) {
	if a == b || overlap(fixedTexts(a), fixedTexts(b)) {
		return true, nil
	}
	ofA, err := r.names(ctx, a)
	if err != nil {
		return false, err
	}
	ofB, err := r.names(ctx, b)
	return err == nil && slices.ContainsFunc(ofA, func(x string) bool {
		return slices.ContainsFunc(ofB, func(y string) bool { return overlap(fixedTexts(x), fixedTexts(y)) })
	}), err
}

// names returns a template and, if it is an alias, the indices behind it.
func (r *reach) names(ctx context.Context, template string) ([]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known, ok := r.known[template]; ok {
		return known, nil
	}
	names := []string{template}
	if len(fixedTexts(template)) == 1 {
		found, err := r.behind(ctx, template)
		if err != nil {
			return nil, err
		}
		names = append(names, found...)
	}
	r.known[template] = names
	return names, nil
}

// fixedTexts are the texts of a template around its attributes: one more than
// there are attributes.
func fixedTexts(template string) []string {
	texts := []string{""}
	within := false
	for i := 0; i < len(template); i++ {
		c := template[i]
		switch {
		case c == '\\' && i+1 < len(template):
			if i++; !within {
				texts[len(texts)-1] += template[i : i+1]
			}
		case c == '{' && !within:
			within = true
		case c == '}' && within:
			within = false
			texts = append(texts, "")
		case !within:
			texts[len(texts)-1] += template[i : i+1]
		}
	}
	return texts
}

// overlap reports whether two templates may make the same text.
func overlap(a, b []string) bool {
	if len(b) == 1 {
		a, b = b, a
	}
	if len(a) == 1 {
		return fits(b, a[0])
	}
	lastA, lastB := a[len(a)-1], b[len(b)-1]
	return (strings.HasPrefix(a[0], b[0]) || strings.HasPrefix(b[0], a[0])) &&
		(strings.HasSuffix(lastA, lastB) || strings.HasSuffix(lastB, lastA))
}

// fits reports whether a template with these fixed texts can make a text.
func fits(texts []string, text string) bool {
	last := len(texts) - 1
	if last == 0 {
		return text == texts[0]
	}
	text, ok := strings.CutPrefix(text, texts[0])
	if !ok || !strings.HasSuffix(text, texts[last]) {
		return false
	}
	text = strings.TrimSuffix(text, texts[last])
	for _, t := range texts[1:last] {
		_, after, found := strings.Cut(text, t)
		if !found {
			return false
		}
		text = after
	}
	return true
}

// owner tells the documents of a route from those of other applications.
type owner struct {
	id        []string // fixed texts of the template
	hashes    bool     // ids may be hashes
	constants map[string][]byte
	field     string // field of documents with the entity type; "": none
	types     []string
}

// ownerOf is the owner of a route's documents. typeAttribute is the attribute of
// items that holds the entity type; "" when it is found in another way.
func ownerOf(r config.Route, typeAttribute string) owner {
	o := owner{id: fixedTexts(r.Project.ID), hashes: r.Project.HashLongIDs, constants: map[string][]byte{}, field: typeAttribute, types: r.Types()}
	for _, f := range r.Project.Fields {
		if f.Name == typeAttribute {
			o.field = "" // the field has another text
		}
		value := f.Value
		if text, ok := value.(string); ok {
			texts := fixedTexts(text)
			if len(texts) > 1 {
				continue
			}
			value = texts[0]
		}
		o.constants[f.Name], _ = json.Marshal(value) // what a file can hold never fails
	}
	return o
}

// owns reports whether a document may be of the route. fields are those of the
// document; nil when they are not known.
func (o owner) owns(id string, fields map[string]json.RawMessage) bool {
	if !fits(o.id, id) && !(o.hashes && strings.HasPrefix(id, "sha256:")) {
		return false
	}
	if fields == nil {
		return true
	}
	for name, value := range o.constants {
		if _, same := docrules.Compare(value, fields[name]); !same {
			return false
		}
	}
	var typ string
	if o.field == "" || json.Unmarshal(fields[o.field], &typ) != nil {
		return true
	}
	return slices.ContainsFunc(o.types, func(t string) bool { return t == typ || strings.Contains(t, "*") })
}

// foreign reports whether a document is of none of the owners.
func foreign(owners []owner) func(document.Doc) bool {
	return func(doc document.Doc) bool {
		var fields map[string]json.RawMessage
		if json.Unmarshal(doc.Source, &fields) != nil {
			fields = nil
		}
		return !slices.ContainsFunc(owners, func(o owner) bool { return o.owns(doc.ID, fields) })
	}
}

// typeAttribute is the attribute that holds the entity type; "" when it is found
// in another way.
func typeAttribute(cfg *config.Config) string {
	e := cfg.EntityType
	if len(e.First) > 0 || e.Key != nil || len(e.Tables) > 0 {
		return ""
	}
	return cmp.Or(e.Attribute, "entityType")
}

// sameCluster reports whether two sinks, by the names that routes have for them,
// are one cluster.
func sameCluster(cfg *config.Config, a, b string) bool {
	if a == b {
		return true
	}
	ofB := clusterURLs(cfg, b)
	return slices.ContainsFunc(clusterURLs(cfg, a), func(x string) bool {
		return slices.ContainsFunc(ofB, func(y string) bool { return strings.EqualFold(strings.TrimRight(x, "/"), strings.TrimRight(y, "/")) })
	})
}

// clusterURLs are those of the sink that a route names; "" is the only cluster.
func clusterURLs(cfg *config.Config, to string) (urls []string) {
	for name, s := range cfg.Sinks {
		if s.OpenSearch != nil && (to == "" || to == name) {
			urls = append(urls, s.OpenSearch.URLs...)
		}
	}
	return urls
}
