package opensearch

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/sluicehq/sluice/internal/docrules"
)

// cannedCalls is a cluster that answers GETs by path, counts documents and refuses to
// create an index.
type cannedCalls map[string]string

func (a cannedCalls) Call(_ context.Context, method, path string, _, out any) error {
	path, _, _ = strings.Cut(path, "?")
	answer, ok := a[method+" "+path]
	switch {
	case !ok && method == "PUT":
		answer = `{"acknowledged":true}`
	case !ok:
		answer = `{}`
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal([]byte(answer), out)
}

// The requirements of an index, and the advice for each missing one.
func TestJudge(t *testing.T) {
	const (
		field  = `"properties":{"sluice":{"properties":{"sequence":{"type":"keyword"},"deleted":{"type":"date"}}}}`
		filter = `"aliases":{"products":{"filter":{"bool":{"must_not":{"exists":{"field":"sluice.deleted"}}}}}}`
		marked = `"_meta":{"sluiceVersions":{"by":"sequence","field":"sluice"}}`
		forget = `"_meta":{"sluiceVersions":{"by":"sequence","field":"sluice","forgetDeleted":true}}`
		bare   = `"aliases":{"products":{}}`
		adopt  = "stop all other writers and run sluice adopt --index products"
	)
	index := func(aliases, mapping string) string {
		return `{"products-000001":{` + aliases + `,"mappings":{` + mapping + `}}}`
	}
	for _, tt := range []struct {
		name, index string // the name that is cannedCalls for
		plain       bool
		answer      string
		want        []string // in the error; none: it fits
	}{
		{"all is there", "products", false, index(filter, marked+","+field), nil},
		{"all is there, without tombstones", "products", true, index(bare, forget+","+field), nil},
		{"the mapping lacks the field", "products", false, index(filter, marked+`,"dynamic":"false"`), []string{`lacks the field "sluice"`, adopt}},
		{"the mapping has another field", "products", false, index(filter, marked+`,"properties":{"sluice":{"type":"text"}}`), []string{"does not fit a mark"}},
		{"the filter is gone", "products", false, index(bare, marked+","+field), []string{"does not hide tombstones", adopt, "search by the alias"}},
		{"the index itself", "products-000001", false, index(`"aliases":{}`, marked+","+field), []string{"does not hide tombstones", "create an alias for it", "--index ALIAS"}},
		{"documents without marks", "products", false, index(bare, field), []string{"its documents (3) are not versioned by sequence", adopt}},
		{"documents without marks, and no alias", "products-000001", false, index(`"aliases":{}`, field), []string{"its documents (3)", "create an alias for it", "--index ALIAS"}},
		{"others forget deletions", "products", false, index(filter, forget+","+field), []string{"this program leaves tombstones", "same forgetDeleted", adopt}},
		{"others leave tombstones", "products", true, index(filter, marked+","+field), []string{"this program deletes documents", "same forgetDeleted", adopt}},
		{"another field for marks", "products", false, index(filter, strings.ReplaceAll(marked, `"sluice"}`, `"other"}`)), []string{`marks in the field "other"`}},
		{"no field in _source", "products", false, index(filter, marked+`,"_source":{"excludes":["sluice"]}`), []string{"does not store the field"}},
	} {
		c := newIndices(cannedCalls{"GET /" + tt.index: tt.answer, "POST /products-000001/_count": `{"count":3}`})
		err := c.Marks("sluice", tt.plain).Inspect(t.Context(), tt.index)
		if (err != nil) != (tt.want != nil) || err != nil && !errors.As(err, new(*docrules.SchemeError)) {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		for _, text := range tt.want {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %v, want %q", tt.name, err, text)
			}
		}
	}
}

// Adopt takes an index without the field, or with documents of other versions. It
// refuses an index without room for the field.
func TestAdoptMarked(t *testing.T) {
	for mapping, want := range map[string]string{
		`"_meta":{"sluiceVersions":{"by":"sequence","field":"sluice"}}`:                                            "",
		`"_meta":{"sluiceVersions":{"by":"sequence","field":"sluice","forgetDeleted":true}}`:                       "",
		`"_meta":{"sluiceVersions":{"by":"sequence","field":"sluice"}},"properties":{"sluice":{"type":"keyword"}}`: "does not fit a mark",
	} {
		c := newIndices(cannedCalls{
			"GET /products":  `{"products-000001":{"aliases":{"products":{}},"mappings":{` + mapping + `}}}`,
			"POST /_aliases": `{"acknowledged":true}`,
		})
		_, err := c.Marks("sluice", false).Adopt(t.Context(), "products")
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", mapping, err, want)
		}
	}
}

// An alias of several indices has one too many: nothing says that it is the first.
func TestApplyToAnAliasOfTwo(t *testing.T) {
	files := fstest.MapFS{"indices/products.json": {Data: []byte(`{}`)}}
	cat := "GET /_cat/aliases/products"
	c := newIndices(cannedCalls{
		cat + ",products.also,products.deletes": `[{"alias":"products","index":"products-000001"},{"alias":"products","index":"times-000001"}]`,
	})
	err := c.Apply(t.Context(), files, IndexOptions{})
	if err == nil || !strings.Contains(err.Error(), "leads to 2 indices (products-000001, times-000001)") || strings.Contains(err.Error(), "delete") {
		t.Error(err)
	}
}
