//go:build integration

package losstest

import (
	"context"
	"crypto/rand"
	"net/http"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/sinks/opensearch"
)

// index is where the documents go, seen by a client of its own that nothing is
// done to.
type index struct {
	name   string
	client *opensearch.Client
}

func newIndex(t *testing.T, url string) *index {
	t.Helper()
	c, err := opensearch.Connect(opensearch.Connection{URLs: []string{url}})
	if err != nil {
		t.Fatal(err)
	}
	x := &index{name: "loss-" + strings.ToLower(rand.Text()), client: c}
	settings := map[string]any{
		"settings": map[string]any{"number_of_shards": 1, "number_of_replicas": 0, "refresh_interval": "5s"},
		"mappings": map[string]any{"dynamic": false, "properties": map[string]any{"pk": map[string]string{"type": "keyword"}}},
	}
	if err := c.Call(t.Context(), http.MethodPut, "/"+x.name, settings, nil); err != nil {
		t.Fatal(err)
	}
	return x
}

// documents asks for those of items, as they are now.
func (x *index) documents(ctx context.Context, numbers []int) ([]document.Doc, error) {
	refs := make([]document.Ref, len(numbers))
	for n, i := range numbers {
		refs[n] = document.Ref{Index: x.name, ID: name(i)}
	}
	return x.client.Get(ctx, refs)
}
