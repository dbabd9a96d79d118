package opensearch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/opensearch-project/opensearch-go/v2/opensearchtransport"

	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/localtest"
)

// script answers requests one after another, and notes them.
type script struct {
	t       *testing.T
	answers []string // "404 {…}" or "{…}"
	asked   []string
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.asked = append(s.asked, strings.TrimSpace(r.Method+" "+r.RequestURI+" "+strings.TrimSpace(string(body))))
	if len(s.answers) == 0 {
		s.t.Errorf("no answer for %s", s.asked[len(s.asked)-1])
		w.WriteHeader(http.StatusTeapot)
		return
	}
	answer := s.answers[0]
	s.answers = s.answers[1:]
	status := 200
	if n, err := fmt.Sscanf(answer, "%d ", &status); n == 1 && err == nil {
		answer = answer[4:]
	}
	w.WriteHeader(status)
	io.WriteString(w, answer)
}

func scripted(t *testing.T, answers ...string) (*Client, *script) {
	s := &script{t: t, answers: answers}
	return answering(t, s.ServeHTTP), s
}

func TestGet(t *testing.T) {
	c, s := scripted(t, `{"docs":[
		{"_index":"i-000001","_id":"a<&>","_version":7,"_seq_no":1,"_primary_term":2,"found":true,"_source":{"n": 1.0,"z":1,"a":2}},
		{"_index":"i-000001","_id":"b","found":false}]}`)
	refs := []document.Ref{{Index: "i", ID: "a<&>", Routing: "r"}, {Index: "i", ID: "b"}}
	docs, err := c.Get(t.Context(), refs)
	if err != nil {
		t.Fatal(err)
	}
	want := []document.Doc{
		{Ref: refs[0], Found: true, Version: 7, Revision: document.Revision{SeqNo: 1, PrimaryTerm: 2}, Source: []byte(`{"n": 1.0,"z":1,"a":2}`)},
		{Ref: refs[1]},
	}
	if diff := cmp.Diff(want, docs); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{`POST /_mget {"docs":[{"_index":"i","_id":"a<&>","routing":"r"},{"_index":"i","_id":"b"}]}`}, s.asked); diff != "" {
		t.Error(diff)
	}
}

func TestGetInChunks(t *testing.T) {
	var sizes []int
	c := answering(t, func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Docs []getRef }
		json.NewDecoder(r.Body).Decode(&in)
		sizes = append(sizes, len(in.Docs))
		var docs []string
		for _, d := range in.Docs {
			docs = append(docs, fmt.Sprintf(`{"_id":%q,"found":true,"_version":1,"_source":{}}`, d.ID))
		}
		fmt.Fprintf(w, `{"docs":[%s]}`, strings.Join(docs, ","))
	})
	refs := make([]document.Ref, 2*maxGet+1)
	for i := range refs {
		refs[i] = document.Ref{Index: "i", ID: fmt.Sprint(i)}
	}
	docs, err := c.Get(t.Context(), refs)
	if err != nil || len(docs) != len(refs) || docs[2*maxGet].ID != "500" {
		t.Errorf("%d documents, %v", len(docs), err)
	}
	if diff := cmp.Diff([]int{250, 250, 1}, sizes); diff != "" {
		t.Error(diff)
	}
	if docs, err := c.Get(t.Context(), nil); err != nil || len(docs) != 0 || len(sizes) != 3 {
		t.Errorf("%v, %v, %d requests", docs, err, len(sizes))
	}
}

func TestGetErrors(t *testing.T) {
	for _, tt := range []struct{ answer, want string }{
		{`{"docs":[{"_index":"i","_id":"a","error":{"type":"index_not_found_exception","reason":"no such index [i]"}}]}`, `index_not_found_exception: no such index [i]: create the index`},
		{`{"docs":[]}`, "asked for 1 documents, the answer holds 0"},
		{`{"docs":[{"_id":"b","found":true,"_version":1,"_source":{}}]}`, `at place 0 the answer holds another document than was asked for`},
		{`{"docs":[{"_id":"a","found":true,"_version":1}]}`, "has no _source"},
		{`403 {"error":{"type":"security_exception","reason":"no permissions"}}`, "lacks the permission"},
	} {
		c, _ := scripted(t, tt.answer)
		if _, err := c.Get(t.Context(), []document.Ref{{Index: "i", ID: "a"}}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.answer, err, tt.want)
		}
	}
}

// Temporary errors are retried in growing intervals. Other errors are not.
func TestReadsAgain(t *testing.T) {
	for _, tt := range []struct {
		answer string
		times  int
	}{
		{`429 {"error":{"type":"rejected_execution_exception"}}`, readAttempts},
		{`503 busy`, readAttempts},
		{`504 late`, readAttempts},
		{`400 {"error":{"type":"parse_exception"}}`, 1},
		{`404 {"error":{"type":"index_not_found_exception"}}`, 1},
		{`500 {"error":{"type":"null_pointer_exception"}}`, readAttempts}, // as for writes
	} {
		answers := make([]string, readAttempts)
		for i := range answers {
			answers[i] = tt.answer
		}
		synctest.Test(t, func(t *testing.T) {
			c, s := scriptedInMemory(t, answers...)
			if _, err := c.Get(t.Context(), []document.Ref{{Index: "i", ID: "a"}}); err == nil || len(s.asked) != tt.times {
				t.Errorf("%s: asked %d times, want %d: %v", tt.answer, len(s.asked), tt.times, err)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		c, _ := scriptedInMemory(t, "503 busy", `{"docs":[{"_id":"a","found":false}]}`)
		if docs, err := c.Get(t.Context(), []document.Ref{{Index: "i", ID: "a"}}); err != nil || len(docs) != 1 {
			t.Errorf("%v, %v", docs, err)
		}
	})
}

// A cluster that begins a moment later than the program is waited for, for some
// seconds and no longer than one request may take.
func TestCheck(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	for _, tt := range []struct {
		name   string
		begin  time.Duration // of the cluster; before that it refuses connections
		hangs  bool          // until then it does not answer
		want   string
		within time.Duration
	}{
		{"there", 0, false, "", 0},
		{"begins", 2 * time.Second, false, "", 6 * time.Second},
		{"stays away", time.Hour, false, "it cannot be reached: is the URL right", 7 * time.Second},
		{"hangs", time.Hour, true, "the time ran out", time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				c, err := connect(Connection{URLs: []string{"http://cluster.test"}}.withDefaults(), roundTrip(func(r *http.Request) (*http.Response, error) {
					switch {
					case time.Since(began) >= tt.begin:
						return response(200, `{}`), nil
					case tt.hangs:
						<-r.Context().Done()
						return nil, r.Context().Err()
					}
					return nil, refused
				}))
				if err != nil {
					t.Fatal(err)
				}
				err = c.Check(t.Context())
				if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%v, want %q", err, tt.want)
				}
				if took := time.Since(began); took < min(tt.begin, 2*time.Second) || took > tt.within {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

const (
	pitOpened = `{"pit_id":"P1","_shards":{"total":1,"failed":0}}`
	noHits    = `{"pit_id":"P2","_shards":{"total":1,"failed":0},"hits":{"hits":[]}}`
)

func hit(id string, sort int) string {
	return fmt.Sprintf(`{"_index":"i-000001","_id":%q,"_version":%d,"_source":{"id":%q},"sort":[%d]}`, id, sort+1, id, sort)
}

func hits(hs ...string) string {
	return `{"pit_id":"P2","_shards":{"total":1,"failed":0},"hits":{"hits":[` + strings.Join(hs, ",") + `]}}`
}

func TestList(t *testing.T) {
	for _, tt := range []struct {
		name    string
		answers []string
		want    []string
		asked   []string // method and path
		bodies  []string // of what was asked, parts in order
		err     string
	}{
		{
			name:    "one shard",
			answers: []string{pitOpened, hits(hit("a", 0), hit("b", 1)), hits(hit("c", 2)), noHits, `{}`},
			want:    []string{"a", "b", "c"},
			bodies:  []string{"", `"pit":{"id":"P1","keep_alive":"5m"},"size":100,"sort":[{"_doc":"asc"}]`, `"search_after":[1]`, `"search_after":[2]`, `{"pit_id":["P2"]}`},
		},
		{
			name:    "several shards",
			answers: []string{`{"pit_id":"P1","_shards":{"total":2,"failed":0}}`, `{"i":{}}`, hits(hit("a", 0)), noHits, hits(hit("b", 0)), noHits, `{}`},
			want:    []string{"a", "b"},
			bodies:  []string{"", "", `"slice":{"id":0,"max":2},"sort":[{"_doc":"asc"}]`, `"search_after":[0]`, `"slice":{"id":1,"max":2}`},
		},
		{
			name:    "several indices",
			answers: []string{`{"pit_id":"P1","_shards":{"total":2,"failed":0}}`, `{"i":{},"j":{}}`, hits(hit("a", 0)), noHits, `{}`},
			want:    []string{"a"},
			bodies:  []string{"", "", `"sort":[{"_id":"asc"}]`},
		},
		{
			name:    "no points in time",
			answers: []string{`405 {"error":"Incorrect HTTP method for uri","status":405}`, hits(hit("a", 0)), `{"_shards":{"total":1},"hits":{"hits":[]}}`},
			want:    []string{"a"},
			asked:   []string{"POST /i/_search/point_in_time", "POST /i/_search?", "POST /i/_search?"},
			bodies:  []string{"", `"sort":[{"_id":"asc"}]`},
		},
		{
			name:    "no shards told",
			answers: []string{`{"pit_id":"P1"}`, noHits, `{}`},
			bodies:  []string{"", `"sort":[{"_id":"asc"}]`},
		},
		{
			name:    "no index",
			answers: []string{`404 {"error":{"type":"index_not_found_exception","reason":"no such index [i]"}}`},
			err:     "listing index i: ",
		},
		{
			name:    "a shard is away",
			answers: []string{`{"pit_id":"P1","_shards":{"total":2,"failed":1}}`, `{}`},
			err:     "1 of 2 shards cannot be read",
		},
		{
			name:    "a shard goes away",
			answers: []string{pitOpened, hits(hit("a", 0)), `{"_shards":{"total":1,"failed":1},"hits":{"hits":[]}}`, `{}`},
			want:    []string{"a"},
			err:     "only 0 of 1 shards",
		},
		{
			name:    "timed out",
			answers: []string{pitOpened, `{"timed_out":true,"_shards":{"total":1},"hits":{"hits":[]}}`, `{}`},
			err:     "a page came from only",
		},
		{
			name:    "no source",
			answers: []string{pitOpened, hits(`{"_id":"a","_version":1,"sort":[0]}`), `{}`},
			err:     `a document came without`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, s := scripted(t, tt.answers...)
			var got []string
			var failure error
			for doc, err := range c.List(t.Context(), "i") {
				if err != nil {
					failure = err
					continue
				}
				got = append(got, doc.ID)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if (failure == nil) != (tt.err == "") || failure != nil && !strings.Contains(failure.Error(), tt.err) {
				t.Errorf("%v, want %q", failure, tt.err)
			}
			if len(s.answers) > 0 {
				t.Errorf("not asked for: %q", s.answers)
			}
			for i, part := range tt.bodies[:min(len(tt.bodies), len(s.asked))] {
				if !strings.Contains(s.asked[i], part) {
					t.Errorf("request %d: %s, want %s in it", i, s.asked[i], part)
				}
			}
			for i, part := range tt.asked {
				if !strings.HasPrefix(s.asked[i], part) {
					t.Errorf("request %d: %s, want %s", i, s.asked[i], part)
				}
			}
		})
	}
}

// A list that stops early also closes its point in time.
func TestListStopsEarly(t *testing.T) {
	c, s := scripted(t, pitOpened, hits(hit("a", 0), hit("b", 1)), `{}`)
	for doc, err := range c.ListIDs(t.Context(), "i") {
		if err != nil || doc.ID != "a" {
			t.Errorf("%v, %v", doc, err)
		}
		break
	}
	if len(s.answers) > 0 || !strings.HasPrefix(s.asked[2], "DELETE /_search/point_in_time") {
		t.Errorf("asked %q", s.asked)
	}
	if !strings.Contains(s.asked[1], `"_source":false`) {
		t.Errorf("ListIDs asks for sources: %s", s.asked[1])
	}
}

// Pages of large documents become small, and of small ones large.
func TestListBoundsPages(t *testing.T) {
	if localtest.Elsewhere(t) { // 8 MB of documents
		return
	}
	for _, tt := range []struct {
		bytes int
		sizes []int
	}{
		{10, []int{100, 400, 1600, 5000, 5000}},
		{100_000, []int{100, 41, 41}},
		{5_000_000, []int{100, 1, 1}},
	} {
		var sizes []int
		c := answering(t, func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasSuffix(r.URL.Path, "/_search") {
				io.WriteString(w, pitOpened)
				return
			}
			var in struct{ Size int }
			json.NewDecoder(r.Body).Decode(&in)
			sizes = append(sizes, in.Size)
			if len(sizes) == len(tt.sizes) {
				io.WriteString(w, noHits)
				return
			}
			hs, source := []string(nil), strings.Repeat("x", tt.bytes-8)
			for i := range min(in.Size, 1+8_000_000/tt.bytes) {
				hs = append(hs, fmt.Sprintf(`{"_id":"%d","_version":1,"sort":[%d],"_source":{"a":"%s"}}`, i, i, source))
			}
			io.WriteString(w, hits(hs...))
		})
		for _, err := range c.List(t.Context(), "i") {
			if err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(tt.sizes, sizes); diff != "" {
			t.Errorf("documents of %d bytes: %s", tt.bytes, diff)
		}
	}
}

// scriptedInMemory is scripted without a network, for a test in a bubble.
func scriptedInMemory(t *testing.T, answers ...string) (*Client, *script) {
	s := &script{t: t, answers: answers}
	at, _ := url.Parse("http://cluster.test")
	w := &wire{hosts: newHosts([]*url.URL{at}), base: roundTrip(func(r *http.Request) (*http.Response, error) {
		rec := httptest.NewRecorder()
		r.RequestURI = r.URL.RequestURI()
		s.ServeHTTP(rec, r)
		return rec.Result(), nil
	})}
	transport, err := opensearchtransport.New(opensearchtransport.Config{URLs: []*url.URL{at}, Transport: w, DisableRetry: true})
	if err != nil {
		t.Fatal(err)
	}
	return &Client{transport: transport, timeout: time.Minute}, s
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
