//go:build integration

package opensearch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/internal/tally"
)

// localIndex makes an index of the test's own and returns its name.
func localIndex(t *testing.T, c *Client, settings string) string {
	t.Helper()
	index := localtest.Name("sink")
	if settings == "" {
		settings = `"mappings":{"properties":{"n":{"type":"long"}}}`
	}
	body := `{"settings":{"number_of_replicas":0,"number_of_shards":2,"gc_deletes":"1h"},` + settings + `}`
	if err := c.Call(t.Context(), "PUT", "/"+index, []byte(body), nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Call(context.Background(), "DELETE", "/"+index, nil, nil); err != nil {
			t.Error(err)
		}
	})
	return index
}

// at returns the source and the version of a document; "" when there is none.
func at(t *testing.T, c *Client, ref document.Ref) (string, int64) {
	t.Helper()
	path := "/" + ref.Index + "/_doc/" + url.PathEscape(ref.ID)
	if ref.Routing != "" {
		path += "?routing=" + url.QueryEscape(ref.Routing)
	}
	var got struct {
		ID      string          `json:"_id"`
		Version int64           `json:"_version"`
		Source  json.RawMessage `json:"_source"`
	}
	err := c.Call(t.Context(), "GET", path, nil, &got)
	var status *StatusError
	if errors.As(err, &status) && status.Status == 404 {
		return "", 0
	}
	if err != nil {
		t.Fatal(err)
	}
	if got.ID != ref.ID {
		t.Errorf("id %q, want %q", got.ID, ref.ID)
	}
	return string(got.Source), got.Version
}

func TestLocalVersions(t *testing.T) {
	localtest.OpenSearch(t, func(t *testing.T, url string) {
		c := connected(t, Connection{URLs: []string{url}})
		index := localIndex(t, c, "")
		var counts tally.Tally
		s, err := New(c, Options{Metrics: &counts})
		if err != nil {
			t.Fatal(err)
		}
		again := func(op document.Op) document.Op { op.Fence = document.NewerOrEqual; return op }
		for _, tt := range []struct {
			op       document.Op
			want     string
			version  int64
			conflict int64 // with that version
		}{
			{putAt(index, "x", 5, `{"n":1}`), `{"n":1}`, 5, 0},
			{putAt(index, "x", 5, `{"n":2}`), `{"n":1}`, 5, 5},
			{again(putAt(index, "x", 5, `{"n":3}`)), `{"n":3}`, 5, 0},
			{again(putAt(index, "x", 4, `{"n":4}`)), `{"n":3}`, 5, 5},
			{delAt(index, "x", 5), `{"n":3}`, 5, 5},
			{delAt(index, "x", 7), "", 0, 0},
			// A late write does not bring it back.
			{putAt(index, "x", 6, `{"n":5}`), "", 0, 7},
			{delAt(index, "x", 8), "", 0, 0}, // 404
			{putAt(index, "x", 9, `{"n":6}`), `{"n":6}`, 9, 0},
			{del(index, "nothing"), `{"n":6}`, 9, 0},
			{putAt(index, "x", 1<<62, `{"n":7}`), `{"n":7}`, 1 << 62, 0},
		} {
			before := counts.Sum("sluice_document_conflicts_total")
			there := int64(0)
			tt.op.Refused = func(r document.Refusal) { there = r.Version }
			if err := s.Write(t.Context(), tt.op); err != nil {
				t.Error(err)
			}
			if got, version := at(t, c, document.Ref{Index: index, ID: "x"}); got != tt.want || version != tt.version {
				t.Errorf("after %s@%d: %s@%d, want %s@%d", tt.op.Action, tt.op.Version, got, version, tt.want, tt.version)
			}
			conflicts := counts.Sum("sluice_document_conflicts_total") - before
			if (conflicts > 0) != (tt.conflict > 0) || there != tt.conflict {
				t.Errorf("%s@%d: %d conflicts with version %d, want %d", tt.op.Action, tt.op.Version, conflicts, there, tt.conflict)
			}
		}
	})
}

// Ids, routings and strings come back as they were written.
func TestLocalOddCharactersComeBack(t *testing.T) {
	localtest.OpenSearch(t, func(t *testing.T, url string) {
		c := connected(t, Connection{URLs: []string{url}})
		index := localIndex(t, c, `"mappings":{"dynamic":false}`)
		for _, gzip := range []int{-1, 1} {
			s, err := New(c, Options{GzipAbove: gzip})
			if err != nil {
				t.Fatal(err)
			}
			var ops []document.Op
			for i, id := range []string{`<a href="x">&'\</a>`, "a/b?c=d#e%2F", "a b+c", "é☃😀\u2028", "tab\tnewline\nnul\x00del\x7f", "_x", ".", "..", "a,b", "*", strings.Repeat("é", 256), "#A|", "A#|"} {
				body, _ := json.Marshal(map[string]string{"s": id + "\x00\x01\x1f\r\n\"\\"})
				op := put(index, id, string(body))
				if i%2 == 1 {
					op.Routing = id
				}
				ops = append(ops, op)
			}
			ops = append(ops, put(index, "lines", "{\r\n  \"s\": \"a\\nb\",\n\t\"t\" : [ 1.50 ]\n}\n"))
			for i, err := range s.WriteAll(t.Context(), ops) {
				if err != nil {
					t.Errorf("%q: %v", ops[i].ID, err)
				}
			}
			for _, op := range ops {
				if op.ID == "." || op.ID == ".." {
					continue // no URL can name them: net/url and servers clean the path
				}
				got, _ := at(t, c, op.Ref())
				var was, is any
				if json.Unmarshal(op.Body, &was) != nil || json.Unmarshal([]byte(got), &is) != nil || !cmp.Equal(was, is) {
					t.Errorf("%q became %q", op.Body, got)
				}
			}
		}
	})
}

// A document that the mapping refuses fails for good, and the error names it.
// An operation that could fail the whole request does not spoil the others.
func TestLocalARefusedDocumentSpoilsNoOthers(t *testing.T) {
	localtest.OpenSearch(t, func(t *testing.T, url string) {
		c := connected(t, Connection{URLs: []string{url}})
		index := localIndex(t, c, `"mappings":{"dynamic":"strict","_routing":{"required":false},"properties":{"n":{"type":"long"}}}`)
		s, err := New(c, Options{Timeout: 5 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		ops := []document.Op{
			put(index, "ok1", `{"n":1}`),
			put(index, "mapping", `{"n":"hidden"}`),
			put(index, "strict", `{"m":1}`),
			put(index, "broken", `{"n":1,}`),
			put(index, "cut", `{"n":{"a":"}`),
			put("Upper", "name", `{"n":1}`),
			put(index, strings.Repeat("x", 513), `{"n":1}`),
			put(index, "negative", `{"n":1}`),
			put(index, "ok2", `{"n":2}`),
		}
		ops[7].Fence, ops[7].Version = document.Newer, -5
		errs := s.WriteAll(t.Context(), ops)
		for i, op := range ops {
			ok := strings.HasPrefix(op.ID, "ok")
			var e *document.Error
			if ok != (errs[i] == nil) || !ok && (!sluice.IsPermanent(errs[i]) || !errors.As(errs[i], &e) || e.Ref != op.Ref()) {
				t.Errorf("%.20s: %v", op.ID, errs[i])
			}
			if errs[i] != nil && strings.Contains(errs[i].Error(), "hidden") {
				t.Errorf("the error quotes the document: %v", errs[i])
			}
		}
		var e *document.Error
		if errors.As(errs[1], &e) && (e.Status != 400 || e.Type == "" || !strings.Contains(e.Reason, "[n]")) {
			t.Errorf("%+v", e)
		}
	})
}

// A problem of the index does not fail its documents for good. They succeed after the
// repair.
func TestLocalIndexHasToBeMended(t *testing.T) {
	localtest.OpenSearch(t, func(t *testing.T, url string) {
		c := connected(t, Connection{URLs: []string{url}})
		index := localIndex(t, c, "")
		s, err := New(c, Options{Timeout: 30 * time.Second, RequireAlias: true})
		if err != nil {
			t.Fatal(err)
		}
		expect := func(what string, op document.Op, status int) {
			t.Helper()
			err := s.Write(t.Context(), op)
			var e *document.Error
			if sluice.IsPermanent(err) || !errors.As(err, &e) || e.Status != status {
				t.Errorf("%s: %v", what, err)
			}
		}
		expect("no alias", put(index, "x", "{}"), 404)
		alias := index + "-alias"
		if err := c.Call(t.Context(), "PUT", "/"+index+"/_alias/"+alias, nil, nil); err != nil {
			t.Fatal(err)
		}
		if err := s.Write(t.Context(), put(alias, "x", "{}")); err != nil {
			t.Error(err)
		}
		if err := c.Call(t.Context(), "POST", "/"+index+"/_close", nil, nil); err != nil {
			t.Fatal(err)
		}
		expect("closed", put(alias, "x", "{}"), 400)
		if err := c.Call(t.Context(), "POST", "/"+index+"/_open", nil, nil); err != nil {
			t.Fatal(err)
		}
		// A blocked index is waited for.
		block := func(on bool) {
			if err := c.Call(t.Context(), "PUT", "/"+index+"/_settings", map[string]any{"index.blocks.read_only_allow_delete": on}, nil); err != nil {
				t.Error(err)
			}
		}
		retried := make(chan struct{}, 1000)
		if s, err = New(c, Options{Timeout: 30 * time.Second, Metrics: tally.Func(func(name, _ string, _ float64) {
			if name == "sluice_document_retries_total" {
				retried <- struct{}{}
			}
		})}); err != nil {
			t.Fatal(err)
		}
		block(true)
		done := make(chan error)
		go func() { done <- s.Write(t.Context(), put(alias, "y", `{"n":7}`)) }()
		<-retried
		block(false)
		if err := <-done; err != nil {
			t.Error(err)
		}
		if got, _ := at(t, c, document.Ref{Index: index, ID: "y"}); got != `{"n":7}` {
			t.Errorf("%s", got)
		}
	})
}

// Many callers write each document several times at once. All are answered, and
// the last write of each document is there.
func TestLocalManyCallers(t *testing.T) {
	localtest.OpenSearch(t, func(t *testing.T, url string) {
		c := connected(t, Connection{URLs: []string{url}})
		index := localIndex(t, c, "")
		s, err := New(c, Options{MaxItems: 50, InFlight: 4})
		if err != nil {
			t.Fatal(err)
		}
		const callers, each = 12, 20
		var wg sync.WaitGroup
		for caller := range callers {
			wg.Go(func() {
				for n := range each {
					own := put(index, fmt.Sprintf("own %d %d", caller, n%7), fmt.Sprintf(`{"n":%d}`, n))
					shared := putAt(index, fmt.Sprintf("shared %d", n%5), int64(n*callers+caller+1), fmt.Sprintf(`{"n":%d}`, n*callers+caller))
					if errs := s.WriteAll(t.Context(), []document.Op{own, shared}); errs != nil {
						t.Error(errors.Join(errs...))
					}
				}
			})
		}
		wg.Wait()
		for caller := range callers {
			for k := range 7 {
				last := each - 1 - (each-1-k)%7
				if got, _ := at(t, c, document.Ref{Index: index, ID: fmt.Sprintf("own %d %d", caller, k)}); got != fmt.Sprintf(`{"n":%d}`, last) {
					t.Errorf("own %d %d: %s, want %d", caller, k, got, last)
				}
			}
		}
		for k := range 5 {
			last := (each-1-(each-1-k)%5)*callers + callers - 1
			if got, version := at(t, c, document.Ref{Index: index, ID: fmt.Sprintf("shared %d", k)}); got != fmt.Sprintf(`{"n":%d}`, last) || version != int64(last+1) {
				t.Errorf("shared %d: %s@%d, want %d", k, got, version, last)
			}
		}
		expectFree(t, s)
	})
}
