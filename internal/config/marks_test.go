package config

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluicehq/sluice/streamtest"
)

// Sluice checks the versions of an index's documents at the start, and before the first
// write. It writes nothing to an index that does not fit.
func TestProjectAsksHowAnIndexIsVersioned(t *testing.T) {
	const (
		field  = `"properties":{"sluice":{"properties":{"sequence":{"type":"keyword"},"deleted":{"type":"date"}}}}`
		marked = `{"_meta":{"sluiceVersions":{"by":"sequence","field":"sluice"}},` + field + `}`
		hides  = `{"orders":{"filter":{"bool":{"must_not":{"exists":{"field":"sluice.deleted"}}}}}}`
	)
	one := func(aliases, mappings string) string {
		return `{"orders-000001":{"aliases":` + aliases + `,"mappings":` + mappings + `}}`
	}
	two := `{"orders-000001":{},"orders-000002":{}}`
	for _, tt := range []struct{ name, version, index, want string }{
		{"by attribute", "attribute:rev", one(`{"orders":{}}`, `{}`), ""},
		{"by attribute, where others go by sequence", "attribute:rev", one(hides, marked), "its documents are versioned by sequence"},
		{"by attribute, into two indices", "attribute:rev", two, "it is an alias of 2 indices (orders-000001, orders-000002)"},
		{"by sequence", "sequence", one(hides, marked), ""},
		{"by sequence, without a filter", "sequence", one(`{"orders":{}}`, marked), "run sluice adopt --index orders"},
		{"by sequence, into two indices", "sequence", two, "it is an alias of 2 indices (orders-000001, orders-000002)"},
	} {
		written := false
		search := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case strings.HasSuffix(r.URL.Path, "/_bulk"):
				written = true
				io.WriteString(w, `{"items":[{"index":{"_index":"orders","_id":"1","status":201,"_seq_no":1,"_primary_term":1}}]}`)
			case r.Method == http.MethodGet && r.URL.Path == "/orders":
				io.WriteString(w, tt.index)
			case strings.HasPrefix(r.URL.Path, "/_cat/"):
				io.WriteString(w, `[]`)
			default:
				io.WriteString(w, `{"version":{"number":"2.19.0"}}`)
			}
		}))
		c, err := Parse("f", "", fmt.Appendf(nil, `source: {tables: [orders]}
sinks: {search: {opensearch: {urls: [%q]}}}
routes:
  - {name: x, on: "*#*", project: {index: orders, id: "{pk}", version: '%s'}}
`, search.URL, tt.version), nil)
		if err != nil {
			t.Fatal(err)
		}
		fits := func(when string, err error) {
			t.Helper()
			if (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s, %s: %v, want %q", tt.name, when, err, tt.want)
			}
		}
		s := newWorld().setup()
		s.Fakes.Write = nil
		s.AWS = func(string) aws.Config { return aws.Config{Region: "us-east-1"} }
		app, err := c.Build(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		rec := streamtest.Insert("orders", map[string]any{"pk": "1", "rev": 1}, streamtest.WithKeys("pk"))
		fits("the first write", app.Router.Dispatch(t.Context(), &rec))
		if written != (tt.want == "") {
			t.Errorf("%s: written %v", tt.name, written)
		}
		fits("validate", app.Routes[0].Lacks(t.Context(), true))
		s.Check = true
		_, err = c.Build(t.Context(), s)
		fits("the start", err)
		search.Close()
	}
	http.DefaultClient.CloseIdleConnections()
}
