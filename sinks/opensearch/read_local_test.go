//go:build integration

package opensearch

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/localtest"
)

// ownIndex makes an index of the test's own.
func ownIndex(t *testing.T, c *Client, shards int) string {
	t.Helper()
	name := localtest.Name("read")
	body := fmt.Sprintf(`{"settings":{"number_of_shards":%d,"number_of_replicas":0,"refresh_interval":-1},"mappings":{"dynamic":false}}`, shards)
	if err := c.Call(t.Context(), "PUT", "/"+name, []byte(body), nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Call(context.WithoutCancel(t.Context()), "DELETE", "/"+name, nil, nil); err != nil {
			t.Error(err)
		}
	})
	return name
}

// bulk writes documents whose version is their number plus 1.
func bulk(t *testing.T, c *Client, index string, docs map[string]document.Doc) {
	t.Helper()
	var body bytes.Buffer
	for id, d := range docs {
		fmt.Fprintf(&body, `{"index":{"_index":%q,"_id":%q,"version":%d,"version_type":"external_gte"`, index, id, d.Version)
		if d.Routing != "" {
			fmt.Fprintf(&body, `,"routing":%q`, d.Routing)
		}
		fmt.Fprintf(&body, "}}\n%s\n", d.Source)
	}
	var out struct{ Errors bool }
	if err := c.Call(t.Context(), "POST", "/_bulk", body.Bytes(), &out); err != nil || out.Errors {
		t.Fatal(err, out)
	}
}

func documents(index string, n int) map[string]document.Doc {
	docs := map[string]document.Doc{}
	for i := range n {
		ref := document.Ref{Index: index, ID: fmt.Sprintf("id#%d|<ü>", i)}
		if i%7 == 0 {
			ref.Routing = fmt.Sprint("r/", i%3)
		}
		docs[ref.ID] = document.Doc{
			Ref: ref, Found: true, Version: int64(i) + 1,
			Source: fmt.Appendf(nil, `{"n": %d.0,"z":"<&>é","big":12345678901234567890123456789012345678,"e":1e2}`, i),
		}
	}
	return docs
}

func TestReadsRealServer(t *testing.T) {
	localtest.OpenSearch(t, func(t *testing.T, url string) {
		c := connected(t, Connection{URLs: []string{url}})
		for _, shards := range []int{1, 3} {
			index := ownIndex(t, c, shards)
			want := documents(index, 2300)
			bulk(t, c, index, want)

			// Without a refresh, Get reads every document, List only searchable ones.
			refs := []document.Ref{{Index: index, ID: "none"}}
			for _, d := range want {
				refs = append(refs, d.Ref)
			}
			docs, err := c.Get(t.Context(), refs)
			if err != nil {
				t.Fatal(err)
			}
			if docs[0].Found {
				t.Errorf("found %v", docs[0])
			}
			got := map[string]document.Doc{}
			for _, d := range docs[1:] {
				if d.Revision.PrimaryTerm != 1 {
					t.Errorf("%s has the revision %+v", d.ID, d.Revision)
				}
				d.Revision = document.Revision{} // each has another
				got[d.ID] = d
			}
			if !reflect.DeepEqual(want, got) { // in a fraction of the time that cmp takes
				t.Errorf("%d shards: Get: %s", shards, cmp.Diff(want, got))
			}
			if err := c.Call(t.Context(), "POST", "/"+index+"/_refresh", nil, nil); err != nil {
				t.Fatal(err)
			}
			gone := "id#9|<ü>"
			list(t, c, index, func(i int) { // what is written meanwhile does not show
				if i == 50 {
					bulk(t, c, index, map[string]document.Doc{gone: {Version: 99, Source: []byte("{}")}, "new": {Version: 1, Source: []byte("{}")}})
					c.Call(t.Context(), "POST", "/"+index+"/_refresh", nil, nil)
				}
			}, want)
		}
	})
}

// list compares the results of List and ListIDs with want.
func list(t *testing.T, c *Client, index string, during func(i int), want map[string]document.Doc) {
	t.Helper()
	got := map[string]document.Doc{}
	i := 0
	for d, err := range c.List(t.Context(), index) {
		if err != nil {
			t.Fatal(err)
		}
		if _, twice := got[d.ID]; twice {
			t.Errorf("%s is listed twice", d.ID)
		}
		got[d.ID] = d
		during(i)
		i++
	}
	if !reflect.DeepEqual(want, got) {
		t.Errorf("List: %s", cmp.Diff(want, got))
	}
}

// The list of an alias of two indices is in the order of ids, for any shards.
func TestListAliasOfTwo(t *testing.T) {
	c := connected(t, Connection{URLs: []string{localtest.OpenSearchURL(t)}})
	a, b := ownIndex(t, c, 2), ownIndex(t, c, 1)
	want := map[string]document.Doc{}
	for i, index := range []string{a, b} {
		docs := documents(index, 300)
		for id, d := range docs {
			d.ID = fmt.Sprint(i, id)
			want[d.ID] = d
		}
	}
	bulk(t, c, a, pick(want, a))
	bulk(t, c, b, pick(want, b))
	alias := a + "-both"
	if err := c.Call(t.Context(), "POST", "/_aliases", []byte(fmt.Sprintf(`{"actions":[{"add":{"indices":[%q,%q],"alias":%q}}]}`, a, b, alias)), nil); err != nil {
		t.Fatal(err)
	}
	if err := c.Call(t.Context(), "POST", "/"+alias+"/_refresh", nil, nil); err != nil {
		t.Fatal(err)
	}
	list(t, c, alias, func(int) {}, want)

	if _, err := c.Get(t.Context(), []document.Ref{{Index: alias, ID: "x"}}); err == nil || !strings.Contains(err.Error(), alias) {
		t.Errorf("Get by an alias of two: %v", err)
	}
}

func pick(docs map[string]document.Doc, index string) map[string]document.Doc {
	picked := maps.Clone(docs)
	maps.DeleteFunc(picked, func(_ string, d document.Doc) bool { return d.Index != index })
	return picked
}

// No point in time stays open.
func TestListLeavesNothingOpen(t *testing.T) {
	c := connected(t, Connection{URLs: []string{localtest.OpenSearchURL(t)}})
	index := ownIndex(t, c, 3)
	bulk(t, c, index, documents(index, 10))
	c.Call(t.Context(), "POST", "/"+index+"/_refresh", nil, nil)
	open := func() int {
		var out struct {
			Indices map[string]struct {
				Total struct {
					Search struct {
						PIT int `json:"point_in_time_current"`
					}
				}
			}
		}
		if err := c.Call(t.Context(), "GET", "/"+index+"/_stats/search", nil, &out); err != nil {
			t.Fatal(err)
		}
		return out.Indices[index].Total.Search.PIT
	}
	for _, err := range c.List(t.Context(), index) {
		if err != nil || open() != 3 {
			t.Errorf("%v, %d open", err, open())
		}
		break
	}
	if n := open(); n != 0 {
		t.Errorf("%d points in time are open", n)
	}
}
