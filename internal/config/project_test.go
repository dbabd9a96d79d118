package config

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/handlers/projection"
	"github.com/sluicehq/sluice/internal/keyhash"
	"github.com/sluicehq/sluice/internal/tally"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/streamtest"
)

// Items that no longer fulfil the expression "only" lose their documents.
func TestProjectOnly(t *testing.T) {
	w := newWorld()
	app := w.build(t, one(Route{On: Strings{"order#*"}, Project: &Project{
		Index: "orders", ID: "{pk}", Version: "attribute:rev", Only: `new.status == "open"`,
	}}))
	at := func(rev, status string) any {
		return plain(`{"pk":"o-1","entityType":"order","rev":` + rev + `,"status":` + status + `}`)
	}
	for _, c := range []struct {
		rec  sluice.Record
		want string // the document's version; empty: no document
	}{
		{streamtest.Insert("orders", at("1", `"new"`), streamtest.WithKeys("pk")), "0"},
		{streamtest.Modify("orders", at("1", `"new"`), at("2", `"open"`), streamtest.WithKeys("pk")), "2"},
		{streamtest.Modify("orders", at("2", `"open"`), at("3", `"closed"`), streamtest.WithKeys("pk")), "0"},
		{streamtest.Modify("orders", at("3", `"closed"`), at("4", `"open"`), streamtest.WithKeys("pk")), "4"},
	} {
		if err := app.Router.Dispatch(t.Context(), &c.rec); err != nil && !sluice.IsSkip(err) {
			t.Fatal(err)
		}
		if got := fmt.Sprint(w.index.Get(document.Ref{Index: "orders", ID: "o-1"}).Version); got != c.want {
			t.Errorf("%s: version %s, want %s", c.rec.New.Raw(), got, c.want)
		}
	}
}

// maxIndices limits the indices that items choose.
func TestProjectMaxIndices(t *testing.T) {
	w := newWorld()
	app := w.build(t, one(Route{On: Strings{"order#*"}, Project: &Project{
		Index: "orders-{tenant}", MaxIndices: 1, ID: "{pk}", Version: "none",
	}}))
	for i, tenant := range []string{"acme", "other", "acme"} {
		rec := streamtest.Insert("orders", plain(`{"pk":"o-1","entityType":"order","tenant":"`+tenant+`"}`), streamtest.WithKeys("pk"))
		if err := app.Router.Dispatch(t.Context(), &rec); (err != nil) != (i == 1) || err != nil && (!sluice.IsPermanent(err) || !strings.Contains(err.Error(), "raise maxIndices")) {
			t.Errorf("%s: %v", tenant, err)
		}
	}
}

// Lacks reports a missing index, with the effect on documents.
func TestProjectIndexIsMissing(t *testing.T) {
	search := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/_cat/aliases/"):
			io.WriteString(w, `[{"alias":"led","index":"led-000001"}]`)
		case r.URL.Path != "/there" && r.URL.Path != "/led":
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer search.Close()
	defer http.DefaultClient.CloseIdleConnections()
	for _, tt := range []struct {
		index   string
		require bool
		want    string
	}{
		{"there", false, ""},
		{"led", false, ""},
		{"orders", false, "f:4:43: routes[0].project.index: there is no index or alias orders: OpenSearch makes an index with the first document, and guesses its mappings"},
		{"led", true, ""},
		{"there", true, "f:4:43: routes[0].project.index: there is no alias there, and requireAlias writes to no other name"},
	} {
		c, err := Parse("f", "", fmt.Appendf(nil, `source: {tables: [orders]}
sinks: {search: {opensearch: {urls: [%q], requireAlias: %t}}}
routes:
  - {name: x, on: "*#*", project: {index: %s, id: "{pk}", version: 'attribute:rev'}}
`, search.URL, tt.require, tt.index), nil)
		if err != nil {
			t.Fatal(err)
		}
		s := newWorld().setup()
		s.Fakes.Write = nil
		s.AWS = func(string) aws.Config { return aws.Config{Region: "us-east-1"} }
		app, err := c.Build(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		err = app.Routes[0].Lacks(t.Context(), true)
		if (tt.want == "") != (err == nil) || err != nil && !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%+v: %v", tt, err)
		}
	}
	app := newWorld().build(t, one(Route{Project: &Project{Index: "orders-{region}", ID: "{pk}", Version: "sequence"}}))
	if app.Routes[0].Lacks != nil {
		t.Error("a template is asked for as if it were a name")
	}
}

// An error about an index's file has a path that can be opened.
func TestIndexFileIsNamed(t *testing.T) {
	search := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer search.Close()
	file := filepath.Join(t.TempDir(), "search", "mapping.json")
	if err := errors.Join(os.Mkdir(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(`{"mapings":{}}`), 0o600)); err != nil {
		t.Fatal(err)
	}
	c := one(Route{Project: &Project{Index: "orders", ID: "{pk}", Version: "sequence"}})
	c.Sinks["search"] = Sink{OpenSearch: &OpenSearch{URLs: []string{search.URL}, Indices: []Index{{Alias: "orders", File: file}}}}
	s := newWorld().setup()
	s.Check = true
	_, err := build(t, c, s)
	if err == nil || !strings.Contains(err.Error(), file+`: "mapings" is not allowed`) {
		t.Errorf("%v, want the path %s", err, file)
	}
}

// Versions of times and pairs, each with an item's attributes.
func TestProjectVersions(t *testing.T) {
	const it = `{"pk":"o-1","entityType":"order","rev":3,"made":"2025-07-04T12:33:21.123Z","at":1751632401.5}`
	for version, want := range map[string]int64{
		"attribute:rev":      3,
		"attribute:made":     1751632401123000000,
		"seconds:at":         1751632401500000000,
		"attribute:made,rev": 1751632401123<<20 | 3,
		"seconds:at,rev":     1751632401500<<20 | 3,
	} {
		w := newWorld()
		app := w.build(t, one(Route{Project: &Project{Index: "orders", ID: "{pk}", Version: version}}))
		rec := streamtest.Insert("orders", plain(it), streamtest.WithKeys("pk"))
		if err := app.Router.Dispatch(t.Context(), &rec); err != nil {
			t.Error(err)
		}
		if docs := w.index.Docs("orders"); len(docs) != 1 || docs[0].Version != want {
			t.Errorf("%s: %+v, want version %d", version, docs, want)
		}
	}
}

// The log has one lost change an hour, with its keys. The metric counts all.
func TestProjectLogsWhatIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		s := w.setup()
		var out bytes.Buffer
		s.Logger = slog.New(slog.NewTextHandler(&out, nil))
		var counts tally.Tally
		s.Metrics = &counts
		s.Fakes.Write = func(_ context.Context, _ string, op document.Op) error {
			op.Refused(document.Refusal{Version: op.Version})
			return nil
		}
		app, err := build(t, one(Route{Name: "orders", Project: &Project{Index: "orders", ID: "{pk}", Version: "attribute:rev"}}), s)
		if err != nil {
			t.Fatal(err)
		}
		rec := streamtest.Modify("orders", plain(`{"pk":"o-1","rev":1,"v":"secret"}`), plain(`{"pk":"o-1","rev":1,"v":"other"}`), streamtest.WithKeys("pk"))
		for range 3 {
			for range 5 {
				if err := app.Router.Dispatch(t.Context(), &rec); err != nil {
					t.Error(err)
				}
			}
			time.Sleep(30 * time.Minute)
		}
		text := out.String()
		counted := counts.Sum("sluice_projection_lost_total")
		if counted != 15 || strings.Count(text, "level=WARN") != 2 || !strings.Contains(text, "route=orders") || strings.Contains(text, "o-1") || !strings.Contains(text, "key hash") || strings.Contains(text, "secret") || strings.Contains(text, "other") {
			t.Errorf("counted %d, logged %s", counted, text)
		}
	})
}

func TestProject(t *testing.T) {
	w := newWorld()
	app := w.build(t, one(Route{On: Strings{"order#*", "gift#SNAPSHOT"}, Project: &Project{
		Index: "orders-{region|lower}", ID: "{pk}", Routing: "{region}", Version: "attribute:rev",
		Exclude: Strings{"secret", "entityType", "region"}, Rename: Texts{{"n", "number"}}, Flatten: Texts{{"at", "at_"}},
		Fields:    Fields{{"type", "an {entityType}"}, {"copy", "{n}"}, {"live", true}, {"none", nil}},
		Tombstone: Fields{{"deleted", true}, {"id", "{pk}"}},
	}}))
	before := `{"pk":"o-1","entityType":"order","region":"EU","rev":1,"n":1}`
	after := `{"pk":"o-1","entityType":"order","region":"EU","rev":2,"n":3,"secret":"x","at":{"city":"Köln"}}`
	const doc = `{"type":"an order","copy":3,"live":true,"none":null,"pk":"o-1","rev":2,"number":3,"at_city":"Köln"}`
	rec := streamtest.Modify("orders", plain(before), plain(after), streamtest.WithKeys("pk"))
	effects, err := app.Routes[0].Explain(t.Context(), &rec)
	if want := (Effect{Does: "write document o-1 of orders-eu with the routing EU as version 2", Sink: "search", Target: "orders-eu", Key: "o-1", Detail: doc}); err != nil || len(effects) != 1 || effects[0] != want {
		t.Errorf("%+v, %v\nwant %+v", effects, err, want)
	}
	if n := len(w.index.Docs("orders-eu")); n != 0 {
		t.Errorf("explaining wrote %d", n)
	}
	ref := document.Ref{Index: "orders-eu", ID: "o-1", Routing: "EU"}
	old := streamtest.Insert("orders", plain(before), streamtest.WithKeys("pk"))
	for _, r := range []sluice.Record{rec, old} { // the older record comes late
		if err := app.Router.Dispatch(t.Context(), &r); err != nil {
			t.Fatal(err)
		}
		if got := w.index.Get(ref); string(got.Source) != doc || got.Version != 2 {
			t.Errorf("%+v %s", got, got.Source)
		}
	}
	gone := streamtest.Remove("orders", plain(after), streamtest.WithKeys("pk"))
	if err := app.Router.Dispatch(t.Context(), &gone); err != nil {
		t.Fatal(err)
	}
	if got := w.index.Get(ref); string(got.Source) != `{"deleted":true,"id":"o-1"}` || got.Version != 3 {
		t.Errorf("%+v %s", got, got.Source)
	}
	p := app.Routes[0].Projection
	if app.Routes[0].Kind != "project" || p == nil || p.Projection == nil || p.Client == nil || p.Sink == nil || p.Store == nil || p.Write == nil ||
		strings.Join(app.Routes[0].Written.Types(), " ") != "order gift" || p.Options.Version.String() != projection.ByAttribute("rev").String() {
		t.Errorf("%+v", app.Routes[0])
	}
	if rt := app.Router.Routes()[0]; !rt.Needs.Has(item.BothImages) || !rt.Snapshot || !rt.Redrive {
		t.Errorf("%+v", rt)
	}
}

func TestLog(t *testing.T) {
	for _, tt := range []struct {
		log         Log
		level, text string
	}{
		{Log{}, "INFO", "record"},
		{Log{Level: "error", Message: "gone"}, "ERROR", "gone"},
	} {
		var out bytes.Buffer
		s := newWorld().setup()
		s.Logger = slog.New(slog.NewJSONHandler(&out, nil))
		app, err := build(t, one(Route{Name: "l", Log: &tt.log}), s)
		if err != nil {
			t.Fatal(err)
		}
		rec := order(t, "REMOVE")
		effects, err := app.Routes[0].Explain(t.Context(), &rec)
		if err != nil || len(effects) != 1 || effects[0].Key != `{"pk":"o-1"}` || out.Len() > 0 {
			t.Errorf("%+v, %v, logged %s", effects, err, &out)
		}
		if err := app.Router.Dispatch(t.Context(), &rec); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), "Ada") || strings.Contains(out.String(), "o-1") {
			t.Errorf("contents are logged: %s", &out)
		}
		var line map[string]any
		if err := json.Unmarshal(out.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		if line["level"] != tt.level || line["msg"] != tt.text || line["route"] != "l" || line["event"] != "REMOVE" || line["table"] != "orders" || line["sequence"] != number || line["key"] != keyhash.Item(rec.Keys) {
			t.Error(out.String())
		}
	}
}

// All routes of an index must use one version, in any order of the routes.
func TestOneIndexIsVersionedInOneWay(t *testing.T) {
	routes := []string{
		"project: {index: i, id: '{pk}', version: sequence}",
		"project: {index: i, id: '{pk}', version: 'attribute:rev'}",
		"project: {index: i, id: '{pk}', version: sequence, mark: m}",
		"project: {index: i, id: '{pk}', version: sequence, forgetDeleted: true}",
	}
	for i, a := range routes {
		for j, b := range routes {
			text := fmt.Sprintf("source: {tables: [orders]}\nsinks: {s: {opensearch: {urls: ['http://127.0.0.1:1']}}}\nroutes:\n- {name: a, on: 'a#*', %s}\n- {name: b, on: 'b#*', %s}\n", a, b)
			c, err := Parse("f", "", []byte(text), nil)
			if err == nil {
				_, err = c.Build(t.Context(), newWorld().setup())
			}
			if (err != nil) != (i != j) || err != nil && !strings.Contains(err.Error(), "versions the documents of i in another way") {
				t.Errorf("%s\n%s: %v", a, b, err)
			}
		}
	}
}

// OpenSearch Serverless has no compare-and-set.
func TestNoSequenceOnServerless(t *testing.T) {
	setup := newWorld().setup()
	setup.AWS = func(string) aws.Config {
		return aws.Config{Region: "eu-west-1", Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")}
	}
	for version, want := range map[string]string{"sequence": "f:4:65: routes[0].project.version: OpenSearch Serverless keeps no revisions", "attribute:rev": ""} {
		text := fmt.Sprintf("source: {tables: [orders]}\nsinks: {s: {opensearch: {urls: ['http://127.0.0.1:1'], sign: aoss}}}\nroutes:\n- {name: a, on: 'a#*', project: {index: i, id: '{pk}', version: '%s'}}\n", version)
		c, err := Parse("f", "", []byte(text), nil)
		if err == nil {
			_, err = c.Build(t.Context(), setup)
		}
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", version, err)
		}
	}
}
