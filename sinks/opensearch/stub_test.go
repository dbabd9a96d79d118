package opensearch

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice/effect/document"
)

// cluster is an OpenSearch cluster that knows _bulk and _mget only. It replaces the
// HTTP client: tests under virtual time need no network. It parses requests by
// encoding/json alone.
type cluster struct {
	t       testing.TB
	delay   time.Duration                  // of each answer
	request func(n int, w []string) *reply // to request n, from 0, with its operations; nil does all
	item    func(n int, w string) *verdict // to one operation in request n; nil does it
	aliases map[string]string              // index by alias

	mu       sync.Mutex
	requests [][]string // operations, as strings: "index+id@version=body", "index-id"
	bodies   []string
	paths    []string
	docs     map[string]stored // by index, id and routing
	seqNo    int64
	read     [][]string   // ids of each _mget
	wants    func(getRef) // is told of what each _mget asks for; nil: nobody is
	unread   string       // the id of a document whose shard is unavailable to _mget
	running  int
	most     int
}

type stored struct {
	version int64
	seqNo   int64
	body    string
	gone    bool
}

// reply is an answer to a whole request.
type reply struct {
	status int
	body   string
	lost   bool // the request is done, its answer lost
	hang   bool // there is no answer until the client gives up
	edit   func(items []map[string]map[string]any) any
	err    error
}

// verdict is an answer to one operation.
type verdict struct {
	status int
	typ    string
	reason string
	done   bool // it is done all the same
}

type action struct {
	Index       string `json:"_index"`
	ID          string `json:"_id"`
	Routing     string `json:"routing"`
	Version     *int64 `json:"version"`
	VersionType string `json:"version_type"`

	IfSeqNo       *int64 `json:"if_seq_no"`
	IfPrimaryTerm int64  `json:"if_primary_term"`
}

func (c *cluster) sink(t testing.TB, o Options) *Sink {
	t.Helper()
	c.t = t
	client, err := connect(Connection{Timeout: time.Minute}.withDefaults(), c)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(client, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// RoundTrip answers one request.
func (c *cluster) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	req.Body.Close()
	if req.URL.Path == "/_mget" {
		return c.mget(req, body)
	}
	if req.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			c.t.Error(err)
			return nil, err
		}
		if body, err = io.ReadAll(z); err != nil {
			c.t.Error(err)
		}
	}
	kinds, actions, sources := c.parse(body)
	var names []string
	for i := range actions {
		names = append(names, name(kinds[i], actions[i], sources[i]))
	}
	c.mu.Lock()
	n := len(c.requests)
	c.requests = append(c.requests, names)
	c.bodies = append(c.bodies, string(body))
	c.paths = append(c.paths, req.Method+" "+req.URL.RequestURI())
	c.running++
	c.most = max(c.most, c.running)
	var r *reply
	if c.request != nil {
		r = c.request(n, names)
	}
	c.mu.Unlock()
	defer func() { c.mu.Lock(); c.running--; c.mu.Unlock() }()
	if c.delay > 0 {
		select {
		case <-time.After(c.delay):
		case <-req.Context().Done():
			return nil, req.Context().Err()
		}
	}
	if r == nil {
		r = &reply{}
	}
	switch {
	case r.hang:
		<-req.Context().Done()
		return nil, req.Context().Err()
	case r.err != nil:
		return nil, r.err
	case r.status != 0:
		return response(r.status, r.body), nil
	}
	c.mu.Lock()
	items := []map[string]map[string]any{}
	failed := false
	for i := range actions {
		it := c.do(n, names[i], kinds[i], actions[i], sources[i])
		if !strings.Contains(req.URL.RawQuery, revisions) {
			delete(it, "_seq_no")
			delete(it, "_primary_term")
		}
		failed = failed || it["status"].(int) >= 300
		items = append(items, map[string]map[string]any{kinds[i]: it})
	}
	c.mu.Unlock()
	if r.lost {
		return nil, errors.New("connection reset by peer")
	}
	var answer any = map[string]any{"took": 1, "errors": failed, "items": items}
	if r.edit != nil {
		answer = r.edit(items)
	}
	b, err := json.Marshal(answer)
	if err != nil {
		c.t.Error(err)
	}
	return response(200, string(b)), nil
}

func response(status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
}

func (c *cluster) parse(body []byte) (kinds []string, actions []action, sources []string) {
	lines := strings.Split(string(body), "\n")
	if lines[len(lines)-1] != "" {
		c.t.Errorf("the body does not end in a newline: %q", body)
	}
	for lines = lines[:len(lines)-1]; len(lines) > 0; lines = lines[1:] {
		var line map[string]action
		d := json.NewDecoder(strings.NewReader(lines[0]))
		d.DisallowUnknownFields()
		if err := d.Decode(&line); err != nil || len(line) != 1 {
			c.t.Errorf("action %q: %v", lines[0], err)
			return
		}
		for kind, a := range line {
			source := ""
			if kind == "index" {
				if len(lines) < 2 || !strings.HasPrefix(lines[1], "{") {
					c.t.Errorf("no document after %q", lines[0])
					return
				}
				source, lines = lines[1], lines[1:]
			}
			kinds, actions, sources = append(kinds, kind), append(actions, a), append(sources, source)
		}
	}
	return kinds, actions, sources
}

func name(kind string, a action, source string) string {
	s := a.Index + "-" + a.ID
	if kind == "index" {
		s = a.Index + "+" + a.ID
	}
	if a.Routing != "" {
		s += "^" + a.Routing
	}
	if a.Version != nil {
		s += fmt.Sprintf("@%d", *a.Version)
		if a.VersionType == "external_gte" {
			s += "~"
		}
	}
	if a.IfSeqNo != nil {
		s += fmt.Sprintf("@#%d", *a.IfSeqNo)
	}
	if kind == "index" {
		s += "=" + source
	}
	return s
}

// do does one operation and returns its item of the answer.
func (c *cluster) do(n int, name, kind string, a action, source string) map[string]any {
	index := a.Index
	if to := c.aliases[index]; to != "" {
		index = to
	}
	it := map[string]any{"_index": index, "_id": a.ID}
	var v *verdict
	if c.item != nil {
		v = c.item(n, name)
	}
	if v != nil {
		it["status"] = v.status
		if v.typ != "" {
			it["error"] = map[string]any{"type": v.typ, "reason": v.reason}
		}
		if !v.done {
			return it
		}
	}
	if c.docs == nil {
		c.docs = map[string]stored{}
	}
	key := strings.Join([]string{index, a.ID, a.Routing}, "\x00")
	old, known := c.docs[key]
	now := stored{version: old.version + 1, seqNo: c.seqNo, body: source, gone: kind == "delete"}
	refused := a.IfSeqNo != nil && (!known || old.gone || old.seqNo != *a.IfSeqNo || a.IfPrimaryTerm != 1)
	if a.Version != nil {
		now.version = *a.Version
		refused = known && (old.version > now.version || old.version == now.version && a.VersionType != "external_gte")
	}
	if refused {
		it["status"] = 409
		it["error"] = map[string]any{"type": "version_conflict_engine_exception", "reason": fmt.Sprintf("[%s]: version conflict, current version [%d] is higher or equal to the one provided [%d]", a.ID, old.version, now.version)}
		return it
	}
	c.seqNo++
	c.docs[key] = now
	if v != nil {
		return it
	}
	it["status"], it["_seq_no"], it["_primary_term"] = 200, now.seqNo, 1
	switch {
	case now.gone && (!known || old.gone):
		it["status"] = 404
	case !now.gone && (!known || old.gone):
		it["status"] = 201
	}
	return it
}

// mget answers with whole sources, for any requested fields.
func (c *cluster) mget(req *http.Request, body []byte) (*http.Response, error) {
	if req.URL.Query().Get("preference") != "_primary" {
		c.t.Errorf("%s may be answered by a copy that is behind", req.URL)
	}
	if c.delay > 0 {
		time.Sleep(c.delay)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var in struct{ Docs []getRef }
	if err := json.Unmarshal(body, &in); err != nil {
		c.t.Error(err)
	}
	var ids []string
	docs := []map[string]any{}
	for _, ref := range in.Docs {
		ids = append(ids, ref.ID)
		if c.wants != nil {
			c.wants(ref)
		}
		d := c.docs[strings.Join([]string{ref.Index, ref.ID, ref.Routing}, "\x00")]
		if ref.ID == c.unread {
			docs = append(docs, map[string]any{"_index": ref.Index, "_id": ref.ID, "error": map[string]any{"type": "no_shard_available_action_exception", "reason": "No shard available for [get [i][a]: routing [null]]"}})
			continue
		}
		it := map[string]any{"_index": ref.Index, "_id": ref.ID, "found": d.body != "" && !d.gone}
		if it["found"] == true {
			it["_version"], it["_seq_no"], it["_primary_term"], it["_source"] = d.version, d.seqNo, 1, json.RawMessage(d.body)
		}
		docs = append(docs, it)
	}
	c.read = append(c.read, ids)
	if c.request != nil {
		if r := c.request(len(c.requests), append([]string{"mget"}, ids...)); r != nil {
			if r.hang {
				<-req.Context().Done()
				return nil, req.Context().Err()
			}
			return response(r.status, r.body), r.err
		}
	}
	b, err := json.Marshal(map[string]any{"docs": docs})
	return response(200, string(b)), err
}

// expect compares the requests, each sorted when sorted is asked for.
func (c *cluster) expect(t *testing.T, want ...[]string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.EqualFunc(c.requests, want, slices.Equal) {
		t.Errorf("requests\n%q, want\n%q", c.requests, want)
	}
}

// live returns the documents that are there, as "index id" → body.
func (c *cluster) live() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := map[string]string{}
	for key, d := range c.docs {
		if !d.gone {
			parts := strings.Split(key, "\x00")
			m[parts[0]+" "+parts[1]] = d.body
		}
	}
	return m
}

func put(index, id, body string) document.Op {
	return document.Op{Action: document.Put, Index: index, ID: id, Body: []byte(body)}
}

func putAt(index, id string, version int64, body string) document.Op {
	return document.Op{Action: document.Put, Index: index, ID: id, Fence: document.Newer, Version: version, Body: []byte(body)}
}

func del(index, id string) document.Op {
	return document.Op{Action: document.Delete, Index: index, ID: id}
}

func delAt(index, id string, version int64) document.Op {
	return document.Op{Action: document.Delete, Index: index, ID: id, Fence: document.Newer, Version: version}
}
