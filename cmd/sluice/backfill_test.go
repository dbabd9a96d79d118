package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/daemon"
	"github.com/sluicehq/sluice/streamtest"
)

// Backfills into two clusters are different. The user and the order of the hosts make
// no difference.
func TestBackfillName(t *testing.T) {
	name := func(urls ...string) string {
		return (&target{projectionFlags: projectionFlags{urls: urls, index: "orders", id: "{pk}", versionAttribute: "rev"}}).name()
	}
	first := name("https://a:9200", "https://b:9200")
	if got := name("https://user:secret@b:9200", "https://a:9200"); got != first {
		t.Errorf("%s and %s are one cluster", got, first)
	}
	for _, other := range []string{name("https://c:9200"), name("https://a:9201", "https://b:9200"), name("https://a:9200/search", "https://b:9200")} {
		if other == first {
			t.Errorf("two clusters are %s", other)
		}
	}
	if len(first) > 200 {
		t.Errorf("%s is too long", first)
	}
}

// As many names may be made from the template of --index as its flag says.
func TestBackfillOfManyIndices(t *testing.T) {
	cluster := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		action, _, _ := strings.Cut(string(body), "}}") // one at a time is written
		fmt.Fprintf(w, `{"errors":false,"items":[%s,"status":201}}]}`, action)
	}))
	defer cluster.Close()
	for most, refused := range map[int]int{0: 20, 110: 10, 120: 0} {
		to := target{projectionFlags{urls: []string{cluster.URL}, index: "{tenant}", id: "{pk}", unversioned: true, typeAttribute: "type"}, most}
		m, err := to.routes(t.Context(), daemon.Setup{Logger: discard})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for i := range 120 {
			rec := streamtest.Snapshot("t", map[string]any{"pk": "a", "type": "x", "tenant": fmt.Sprint("t", i)})
			routes, err := m.Match(nil, &rec)
			if err != nil || len(routes) != 1 {
				t.Fatal(routes, err)
			}
			if err := routes[0].Handler(t.Context(), &rec); sluice.IsPermanent(err) {
				n++
			} else if err != nil {
				t.Fatal(err)
			}
		}
		if n != refused {
			t.Errorf("at most %d: %d items are refused, want %d", most, n, refused)
		}
	}
}

// OpenSearch Serverless does not answer GET /. A backfill by flags starts without it.
func TestBackfillIntoServerless(t *testing.T) {
	var asked []string
	collection := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked = append(asked, r.Method+" "+r.URL.Path); r.URL.Path == "/" {
			http.NotFound(w, r)
		}
	}))
	defer collection.Close()
	cfg := aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")}
	for sign, want := range map[string]string{"aoss": "[HEAD /orders]", "es": "[GET /]"} {
		asked = nil
		to := target{projectionFlags: projectionFlags{urls: []string{collection.URL}, sign: sign, index: "orders", id: "{pk}", unversioned: true, typeAttribute: "type"}}
		_, err := to.routes(t.Context(), daemon.Setup{AWS: func(string) aws.Config { return cfg }, Logger: discard})
		if got := fmt.Sprint(asked); got != want || (err != nil) != (sign == "es") {
			t.Errorf("%s: asked %s, want %s; %v", sign, got, want, err)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

// Nobody listens where the collection should be. A backfill by flags says so, rather
// than retry its first item for ever.
func TestBackfillIntoNoServerless(t *testing.T) {
	cfg := aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")}
	to := target{projectionFlags: projectionFlags{urls: []string{"http://127.0.0.1:1"}, sign: "aoss", index: "orders", id: "{pk}", unversioned: true, typeAttribute: "type"}}
	_, err := to.routes(t.Context(), daemon.Setup{AWS: func(string) aws.Config { return cfg }, Logger: discard})
	if err == nil || !strings.HasPrefix(err.Error(), "OpenSearch does not answer: ") {
		t.Error(err)
	}
}

// --version-sequence writes into an index whose documents are marked, and into no
// other.
func TestBackfillBySequence(t *testing.T) {
	const mapping = `{"_meta":{"sluiceVersions":{"by":"sequence","field":"sluice"}},"properties":{"sluice":{"properties":{"sequence":{"type":"keyword"},"deleted":{"type":"date"}}}}}`
	for _, tt := range []struct{ mapping, want string }{{mapping, ""}, {`{}`, "are not versioned by sequence"}} {
		written := ""
		cluster := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/_bulk":
				body, _ := io.ReadAll(r.Body)
				written = string(body)
				io.WriteString(w, `{"items":[{"index":{"_index":"orders","_id":"a","status":201,"_seq_no":1,"_primary_term":1}}]}`)
			case "/orders":
				fmt.Fprintf(w, `{"orders-1":{"aliases":{"orders":{"filter":{"bool":{"must_not":{"exists":{"field":"sluice.deleted"}}}}}},"mappings":%s}}`, tt.mapping)
			default:
				io.WriteString(w, `{"count":1}`)
			}
		}))
		to := target{projectionFlags: projectionFlags{urls: []string{cluster.URL}, index: "orders", id: "{pk}", bySequence: true, typeAttribute: "type"}}
		routes, err := to.routes(t.Context(), daemon.Setup{AWS: func(string) aws.Config { return aws.Config{Region: "us-east-1"} }})
		if err != nil {
			t.Fatal(err)
		}
		rec := streamtest.Snapshot("orders", map[string]any{"pk": "a"})
		matched, err := routes.Match(nil, &rec)
		if err != nil || len(matched) != 1 {
			t.Fatal(matched, err)
		}
		err = matched[0].Handler(t.Context(), &rec)
		if (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) || strings.Contains(written, `"sequence"`) != (err == nil) {
			t.Errorf("%v, want %q; written %s", err, tt.want, written)
		}
		cluster.Close()
	}
	http.DefaultClient.CloseIdleConnections()
}
