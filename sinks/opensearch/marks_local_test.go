//go:build integration

package opensearch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/docrules"
	"github.com/sluicehq/sluice/internal/localtest"
)

// search returns the ids that a search by a name finds.
func search(t *testing.T, c *Indices, name string) string {
	t.Helper()
	if err := c.Refresh(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	var out struct {
		Hits struct {
			Hits []struct {
				ID string `json:"_id"`
			}
		}
	}
	if err := c.c.Call(t.Context(), http.MethodPost, "/"+name+"/_search", map[string]any{"sort": []string{"_doc"}}, &out); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, h := range out.Hits.Hits {
		ids = append(ids, h.ID)
	}
	return strings.Join(ids, " ")
}

func adopt(m *Marks, name string) error {
	_, err := m.Adopt(context.Background(), name)
	return err
}

func TestMarksRealServer(t *testing.T) {
	localtest.OpenSearch(t, func(t *testing.T, url string) {
		client, c, name := connectIndices(t, url)
		put := func(index, id, body string) {
			t.Helper()
			if err := client.Call(t.Context(), http.MethodPut, "/"+index+"/_doc/"+id, []byte(body), nil); err != nil {
				t.Fatal(err)
			}
		}
		refused := func(err error, want string) {
			t.Helper()
			var scheme *docrules.SchemeError
			if !errors.As(err, &scheme) || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want one with %q", err, want)
			}
		}
		ok := func(err error) {
			t.Helper()
			if err != nil {
				t.Error(err)
			}
		}

		must := c.Marks("sluice", false)
		must.MustExist = true
		refused(must.Check(t.Context(), name), "does not exist")
		// Several programs at once create the missing index once.
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() { ok(c.Marks("sluice", false).Check(t.Context(), name)) })
		}
		wg.Wait()
		put(name, "a", `{"sluice":{"sequence":"20250704T123321.123-0000000000000028856700000818875059017386"}}`)
		put(name, "b", `{"sluice":{"sequence":"20250704T123321.123-0000000000000028856700000818875059017386","deleted":"2026-01-01T00:00:00Z"}}`)
		if got := search(t, c, name); got != "a" {
			t.Errorf("a search finds %q", got)
		}
		if n, err := c.Count(t.Context(), name+"-000001", "sluice"); n != 1 || err != nil {
			t.Errorf("%d documents, %v", n, err)
		}
		// It takes those who go by the same marks, and nobody else.
		ok(c.Marks("sluice", false).Inspect(t.Context(), name))
		refused(c.CheckUnmarked(t.Context(), name), "versioned by sequence")
		refused(c.Marks("other", false).Check(t.Context(), name), `marks in the field "sluice"`)
		ok(c.Apply(t.Context(), fstest.MapFS{"indices/" + name + ".json": {Data: []byte(`{"mappings":{"dynamic":"false"}}`)}},
			IndexOptions{NoReplicas: true, Different: func(error) {}, Marks: map[string]*Marks{name: c.Marks("sluice", false)}}))

		// A second index behind the alias makes of one change two documents.
		ok(func() error { _, err := c.Create(t.Context(), name+"-000002", []byte(`{}`)); return err }())
		ok(c.Point(t.Context(), nil, map[string]string{name: name + "-000002"}))
		refused(c.Marks("sluice", false).Check(t.Context(), name), "an alias of 2 indices")
		refused(c.CheckUnmarked(t.Context(), name), "an alias of 2 indices")

		// Documents without marks are taken when somebody says so.
		old := name + "-000003"
		ok(client.Call(t.Context(), http.MethodPut, "/"+old, []byte(`{"settings":{"number_of_replicas":0},"aliases":{"`+name+`-old":{"is_write_index":true,"filter":{"term":{"_id":"c"}}}}}`), nil))
		marks := c.Marks("sluice", false)
		put(old, "c", `{}`)
		refused(marks.Check(t.Context(), name+"-old"), "its documents (1) are not versioned")
		ok(adopt(marks, name+"-old"))
		ok(c.Marks("sluice", false).Check(t.Context(), name+"-old"))
		put(old, "d", `{"sluice":{"sequence":"20250704T123321.123-0000000000000028856700000818875059017386","deleted":"2026-01-01T00:00:00Z"}}`)
		if got := search(t, c, name+"-old"); got != "c" {
			t.Errorf("a search finds %q", got)
		}
		put(old, "e", `{}`)
		if got := search(t, c, name+"-old"); got != "c" {
			t.Errorf("the alias' own filter is gone: a search finds %q", got)
		}
		ok(c.Marks("sluice", false).Check(t.Context(), name+"-old"))
		var alias map[string]struct {
			Aliases map[string]map[string]json.RawMessage
		}
		if err := client.Call(t.Context(), http.MethodGet, "/"+old+"/_alias", nil, &alias); err != nil || string(alias[old].Aliases[name+"-old"]["is_write_index"]) != "true" {
			t.Errorf("%s, %v", fmt.Sprint(alias), err)
		}
		refused(adopt(c.Marks("sluice", false), name+"-000002"), "searches of an index")
		ok(adopt(c.Marks("sluice", true), name+"-000002"))
	})
}

// An index whose mapping hides marks, or has another field of that name, is refused,
// also by Adopt, which then changes nothing.
func TestMarksOfOtherMappings(t *testing.T) {
	localtest.OpenSearch(t, func(t *testing.T, url string) {
		client, c, name := connectIndices(t, url)
		for mapping, want := range map[string]string{
			`{"_source":{"enabled":false}}`:                                         "does not store the field",
			`{"_source":{"excludes":["big","sluice.*"]}}`:                           "does not store the field",
			`{"_source":{"includes":["title"]}}`:                                    "does not store the field",
			`{"properties":{"sluice":{"type":"keyword"}}}`:                          "does not fit a mark",
			`{"properties":{"sluice":{"properties":{"sequence":{"type":"text"}}}}}`: "does not fit a mark",
		} {
			body := `{"settings":{"number_of_replicas":0},"aliases":{"` + name + `":{}},"mappings":` + mapping + `}`
			if err := client.Call(t.Context(), http.MethodPut, "/"+name+"-000001", []byte(body), nil); err != nil {
				t.Fatal(err)
			}
			for _, err := range []error{c.Marks("sluice", false).Check(t.Context(), name), adopt(c.Marks("sluice", false), name)} {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %v, want %q", mapping, err, want)
				}
			}
			if d, err := c.describe(t.Context(), name); err != nil || len(d.meta) > 0 {
				t.Errorf("%s: %+v, %v", mapping, d, err)
			}
			if err := c.Delete(t.Context(), name+"-000001"); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Many writes go to a new index: the first one asks for the index, the others wait for
// the answer.
func TestMarksOfTheFirstWrite(t *testing.T) {
	localtest.OpenSearch(t, func(t *testing.T, url string) {
		client, c, name := connectIndices(t, url)
		write := c.Marks("sluice", false).Writer(func(ctx context.Context, op document.Op) error {
			return client.Call(ctx, http.MethodPut, "/"+op.Index+"/_doc/"+op.ID, op.Body, nil)
		})
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				if err := write(t.Context(), document.Op{Index: name, ID: fmt.Sprint(i), Body: []byte(`{"sluice":{"sequence":"20250704T123321.123-0000000000000028856700000818875059017386"}}`)}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if d, err := c.describe(t.Context(), name); err != nil || d == nil || d.index != name+"-000001" || !d.hides(name, noTombstones("sluice")) {
			t.Errorf("%+v, %v", d, err)
		}
	})
}

// A sweep deletes old tombstones, except those overwritten since the sweep found them.
func TestSweepRealServer(t *testing.T) {
	localtest.OpenSearch(t, func(t *testing.T, url string) {
		client, c, name := connectIndices(t, url)
		m := c.Marks("sluice", false)
		if err := m.Check(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		sink, err := New(client, Options{})
		if err != nil {
			t.Fatal(err)
		}
		op := func(id, routing string, deleted time.Duration) document.Op {
			mark := document.Mark{Sequence: "20250704T123321.123-0000000000000028856700000818875059017386"}
			if deleted > 0 {
				mark.Deleted = time.Now().Add(-deleted).UTC().Format(time.RFC3339)
			}
			body, _ := json.Marshal(map[string]any{"sluice": mark})
			return document.Op{Action: document.Put, Index: name, ID: id, Routing: routing, Body: body}
		}
		ids := func() string {
			got := strings.Fields(search(t, c, name+"-000001"))
			slices.Sort(got)
			return strings.Join(got, " ")
		}
		ops := []document.Op{op("routed", "r", 50*time.Hour), op("young", "", 30*time.Hour), op("alive", "", 0), op("made again", "", 50*time.Hour)}
		for i := range 1100 {
			ops = append(ops, op(fmt.Sprintf("old-%d", i), "", 50*time.Hour))
		}
		if err := errors.Join(sink.WriteAll(t.Context(), ops)...); err != nil {
			t.Fatal(err)
		}
		again := false
		n, err := m.Sweep(t.Context(), name, time.Now().Add(-48*time.Hour), func(ctx context.Context, gone document.Op) error {
			if gone.ID == "made again" && !again {
				again = true
				if err := sink.Write(ctx, op(gone.ID, "", 0)); err != nil {
					return err
				}
			}
			return sink.Write(ctx, gone)
		})
		if got := ids(); err != nil || n != 1102 || got != "again alive made young" {
			t.Errorf("%d swept, %v; left are %s", n, err, got)
		}
		if _, err := m.Sweep(t.Context(), name, time.Now().Add(-24*time.Hour), sink.Write); err == nil {
			t.Error("tombstones of a day are swept")
		}
	})
}
