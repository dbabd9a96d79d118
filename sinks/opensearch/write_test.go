package opensearch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/tally"
)

// writeAll writes several operations, as most tests do.
func writeAll(t *testing.T, s *Sink, ops ...document.Op) []error {
	t.Helper()
	return s.WriteAll(t.Context(), ops)
}

func TestWriteAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c cluster
		s := c.sink(t, Options{})
		if errs := writeAll(t, s); errs != nil {
			t.Error(errs)
		}
		c.expect(t)
		errs := writeAll(t, s,
			put("i", "a", `{"n":1}`),
			putAt("i", "b", 7, `{"n":2}`),
			document.Op{Action: document.Put, Index: "j", ID: "a", Routing: "r", Fence: document.NewerOrEqual, Body: []byte(` {} `)},
			delAt("i", "c", 3),
			del("i", "d"),
		)
		if errs != nil {
			t.Error(errs)
		}
		c.expect(t, []string{`i+a={"n":1}`, `i+b@7={"n":2}`, `j+a^r@0~={}`, "i-c@3", "i-d"})
		if diff := cmp.Diff(map[string]string{"i a": `{"n":1}`, "i b": `{"n":2}`, "j a": "{}"}, c.live()); diff != "" {
			t.Error(diff)
		}
		if want := "POST " + bulkPath; c.paths[0] != want {
			t.Errorf("%s, want %s", c.paths[0], want)
		}
	})
}

func TestWriteSharesRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cluster{delay: time.Millisecond}
		s := c.sink(t, Options{})
		done := make(chan error)
		for i := range 100 {
			go func() { done <- s.Write(t.Context(), put("i", fmt.Sprint(i), "{}")) }()
		}
		for range 100 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if len(c.requests) != 1 || len(c.live()) != 100 {
			t.Errorf("%d requests, %d documents", len(c.requests), len(c.live()))
		}
	})
}

// A call that fills several requests waits for nobody to share the last.
func TestWriteAllOfSeveralRequestsWaitsForNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cluster{delay: time.Millisecond}
		s := c.sink(t, Options{MaxItems: 100, InFlight: 1, Linger: time.Hour})
		var ops []document.Op
		for i := range 250 {
			ops = append(ops, put("i", fmt.Sprint(i), "{}"))
		}
		start := time.Now()
		if errs := writeAll(t, s, ops...); errs != nil {
			t.Error(errs)
		}
		if took := time.Since(start); took != 3*time.Millisecond || len(c.live()) != 250 {
			t.Errorf("took %v for %d documents, want three round trips", took, len(c.live()))
		}
	})
}

// The status of each item decides, with or without an error object.
func TestTheStatusOfEachItemDecides(t *testing.T) {
	fenced, unfenced := delAt("i", "x", 5), del("i", "x")
	for _, tt := range []struct {
		name  string
		op    document.Op
		v     verdict
		tries int // until it is given up, or done; 0: many
		ok    bool
		never bool
	}{
		{"done", put("i", "x", "{}"), verdict{status: 200}, 1, true, false},
		{"created", put("i", "x", "{}"), verdict{status: 201}, 1, true, false},
		{"conflict", fenced, verdict{409, "version_conflict_engine_exception", "", false}, 1, true, false},
		{"conflict without its error", fenced, verdict{status: 409}, 1, true, false},
		{"another conflict", fenced, verdict{409, "resource_already_exists_exception", "", false}, 0, false, false},
		{"conflict without a fence", unfenced, verdict{409, "version_conflict_engine_exception", "", false}, 0, false, false},
		{"nothing to delete", unfenced, verdict{status: 404}, 1, true, false},
		{"no index to delete from", unfenced, verdict{404, "index_not_found_exception", "no such index", false}, 1, false, false},
		{"no index to put into", put("i", "x", "{}"), verdict{status: 404}, 1, false, false},
		{"mapping", put("i", "x", "{}"), verdict{400, "mapper_parsing_exception", "failed to parse", false}, 1, false, true},
		{"400 without its error", put("i", "x", "{}"), verdict{status: 400}, 1, false, true},
		{"413", put("i", "x", "{}"), verdict{status: 413}, 1, false, true},
		{"rejected", put("i", "x", "{}"), verdict{429, "es_rejected_execution_exception", "", false}, 0, false, false},
		{"429", put("i", "x", "{}"), verdict{status: 429}, 0, false, false},
		{"500", put("i", "x", "{}"), verdict{status: 500}, 0, false, false},
		{"502", put("i", "x", "{}"), verdict{status: 502}, 0, false, false},
		{"503", put("i", "x", "{}"), verdict{503, "unavailable_shards_exception", "", false}, 0, false, false},
		{"504", put("i", "x", "{}"), verdict{status: 504}, 0, false, false},
		{"blocked", put("i", "x", "{}"), verdict{403, "cluster_block_exception", "index [i] blocked", false}, 0, false, false},
		{"full disk", put("i", "x", "{}"), verdict{429, "cluster_block_exception", "disk usage exceeded flood-stage watermark", false}, 0, false, false},
		{"forbidden", put("i", "x", "{}"), verdict{403, "security_exception", "no permissions", false}, 1, false, false},
		{"closed", put("i", "x", "{}"), verdict{400, "index_closed_exception", "closed", false}, 1, false, false},
		{"alias of many", put("i", "x", "{}"), verdict{400, "illegal_argument_exception", "no write index is defined for alias [i].", false}, 1, false, false},
		{"too many shards", put("i", "x", "{}"), verdict{400, "validation_exception", "Validation Failed: 1: this action would add [2] total shards, but this cluster currently has [1000]/[1000] maximum shards open;", false}, 1, false, false},
		{"an id in Serverless", put("i", "x", "{}"), verdict{400, "illegal_argument_exception", "Document ID is not supported in create/index operation request", false}, 1, false, false},
		{"no such pipeline", put("i", "x", "{}"), verdict{400, "illegal_argument_exception", "pipeline with id [p] does not exist", false}, 1, false, false},
		{"a data stream", put("i", "x", "{}"), verdict{400, "illegal_argument_exception", "only write ops with an op_type of create are allowed in data streams", false}, 1, false, false},
		{"no status", put("i", "x", "{}"), verdict{}, 0, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := cluster{item: func(_ int, w string) *verdict {
					if strings.Contains(w, "neighbour") {
						return nil
					}
					return &tt.v
				}}
				s := c.sink(t, Options{Timeout: time.Minute})
				start := time.Now()
				errs := writeAll(t, s, put("i", "neighbour1", "{}"), tt.op, put("i", "neighbour2", "{}"))
				if tt.ok {
					if errs != nil || len(c.requests) != 1 {
						t.Errorf("%d requests: %v", len(c.requests), errs)
					}
					return
				}
				if errs == nil || errs[0] != nil || errs[2] != nil {
					t.Fatalf("%v, want an error of the one in the middle", errs)
				}
				err := errs[1]
				var e *document.Error
				if !errors.As(err, &e) || e.Ref != tt.op.Ref() || e.Status != tt.v.status || e.Type != tt.v.typ || e.Reason != tt.v.reason {
					t.Errorf("%v: %+v", err, e)
				}
				if sluice.IsPermanent(err) != tt.never {
					t.Errorf("permanent %v, want %v: %v", !tt.never, tt.never, err)
				}
				if tt.tries > 0 && len(c.requests) != tt.tries {
					t.Errorf("%d requests, want %d", len(c.requests), tt.tries)
				}
				if tt.tries == 0 {
					if n := len(c.requests); n < 5 || n > 500 {
						t.Errorf("%d tries in a minute", n)
					}
					if took := time.Since(start); took > time.Minute+2*time.Millisecond { // after the linger
						t.Errorf("took %v", took)
					}
				}
				for _, again := range c.requests[1:] {
					if len(again) != 1 {
						t.Errorf("%q was sent again, want only what failed", again)
					}
				}
			})
		})
	}
}

// A write that is older than the document changes nothing, and succeeds.
func TestAnOlderWriteSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c cluster
		var counts tally.Tally
		s := c.sink(t, Options{Metrics: &counts})
		var there []int64
		for _, op := range []document.Op{putAt("i", "x", 7, `{"v":7}`), putAt("i", "x", 6, `{"v":6}`), delAt("i", "x", 7)} {
			op.Refused = func(r document.Refusal) { there = append(there, r.Version) }
			if err := s.Write(t.Context(), op); err != nil {
				t.Error(err)
			}
		}
		if diff := cmp.Diff(map[string]string{"i x": `{"v":7}`}, c.live()); diff != "" {
			t.Error(diff)
		}
		if conflicts := counts.By("sluice_document_conflicts_total"); !maps.Equal(conflicts, map[string]int{"i": 2}) {
			t.Errorf("conflicts %v", conflicts)
		}
		if !cmp.Equal(there, []int64{7, 7}) {
			t.Errorf("refused by the versions %v", there)
		}
	})
}

// A request that fails as a whole is tried again. Then each caller has its own
// error.
func TestAFailedRequestIsTriedAgain(t *testing.T) {
	for _, tt := range []struct {
		name  string
		r     reply
		tries int // 0: many
		want  string
	}{
		{"429", reply{status: 429, body: `{"error":{"type":"circuit_breaking_exception","reason":"data too large"}}`}, 0, "circuit_breaking_exception: data too large"},
		{"503", reply{status: 503}, 0, "status 503"},
		{"500", reply{status: 500}, 0, "status 500"},
		{"network", reply{err: errors.New("connection reset")}, 0, "connection reset"},
		{"no answer", reply{hang: true}, 0, "the time ran out"},
		{"no JSON", reply{edit: func([]map[string]map[string]any) any { return "x" }}, 0, "what was written is not known"},
		{"401", reply{status: 401}, 1, "check Username and Password"},
		{"403", reply{status: 403, body: `{"error":{"type":"security_exception","reason":"no permissions for [indices:data/write/bulk]"}}`}, 1, "security_exception: no permissions for [indices:data/write/bulk]"},
		{"blocked", reply{status: 403, body: `{"error":{"type":"cluster_block_exception","reason":"blocked"}}`}, 0, "blocked"},
		{"404", reply{status: 404}, 1, "status 404"},
		{"400 of a proxy", reply{status: 400, body: "<html>"}, 1, "status 400"},
		{"400 of the request", reply{status: 400, body: `{"error":{"type":"illegal_argument_exception","reason":"request [/_bulk] contains unrecognized parameter: [x]"}}`}, 1, "unrecognized parameter"},
		{"400 that means not now", reply{status: 400, body: `{"error":{"type":"validation_exception","reason":"Validation Failed: 1: this action would add [2] total shards, but this cluster currently has [1000]/[1000] maximum shards open;"}}`}, 1, "maximum shards"},
		{"400 of the cluster's settings", reply{status: 400, body: `{"error":{"type":"illegal_argument_exception","reason":"explicit index in bulk is not allowed"}}`}, 1, "rest.action.multi.allow_explicit_index"},
		{"redirect", reply{status: 301}, 1, "leads somewhere else"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := cluster{request: func(int, []string) *reply { return &tt.r }}
				s := c.sink(t, Options{Timeout: time.Minute})
				start := time.Now()
				ops := []document.Op{putAt("i", "a", 4, "{}"), del("j", "b")}
				errs := writeAll(t, s, ops...)
				if took := time.Since(start); took > time.Minute+2*time.Millisecond { // after the linger
					t.Errorf("took %v", took)
				}
				for i, op := range ops {
					var e *document.Error
					if errs == nil || !errors.As(errs[i], &e) || sluice.IsPermanent(errs[i]) {
						t.Fatalf("%v, want an error that is not permanent", errs)
					}
					if e.Action != op.Action || e.Ref != op.Ref() || e.Version != op.Version || e.Status != tt.r.status {
						t.Errorf("%+v is not of %v", e, op)
					}
					for _, want := range []string{tt.want, "POST /_bulk at http://127.0.0.1:9200"} {
						if !strings.Contains(errs[i].Error(), want) {
							t.Errorf("%v\nhas no %q", errs[i], want)
						}
					}
				}
				if n := len(c.requests); tt.tries != 0 && n != tt.tries || tt.tries == 0 && (n < 3 || n > 500) {
					t.Errorf("%d requests", n)
				}
			})
		})
	}
}

// An answer that is lost has the same written again.
func TestAnswerThatIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cluster{request: func(n int, _ []string) *reply { return &reply{lost: n < 2} }}
		s := c.sink(t, Options{})
		if errs := writeAll(t, s, putAt("i", "a", 1, "{}"), delAt("i", "b", 1)); errs != nil {
			t.Error(errs)
		}
		if len(c.requests) != 3 {
			t.Errorf("%d requests", len(c.requests))
		}
	})
}

// An answer with other items, or in another order, says nothing.
func TestAnAnswerInAnotherOrderSaysNothing(t *testing.T) {
	type items = []map[string]map[string]any
	whole := func(it any) any { return map[string]any{"errors": false, "items": it} }
	for _, tt := range []struct {
		name string
		edit func(items) any
	}{
		{"swapped", func(it items) any { it[0], it[1] = it[1], it[0]; return whole(it) }},
		{"one too few", func(it items) any { return whole(it[:2]) }},
		{"one too many", func(it items) any { return whole(append(it, it[0])) }},
		{"none", func(items) any { return whole(items{}) }},
		{"no items", func(items) any { return map[string]any{"errors": false} }},
		{"another id", func(it items) any { it[0]["index"]["_id"] = "z"; return whole(it) }},
		{"no id", func(it items) any { delete(it[0]["index"], "_id"); return whole(it) }},
		{"another action", func(it items) any { it[0]["delete"] = it[0]["index"]; delete(it[0], "index"); return whole(it) }},
		{"two actions", func(it items) any { it[0]["update"] = it[0]["index"]; return whole(it) }},
		{"no action", func(it items) any { it[0] = nil; return whole(it) }},
		{"one id, swapped", func(it items) any { it[0], it[2] = it[2], it[0]; return whole(it) }},
		{"items of another kind", func(items) any { return whole(map[string]any{}) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := cluster{request: func(n int, _ []string) *reply {
					if n == 0 {
						return &reply{edit: tt.edit}
					}
					return nil
				}}
				var counts tally.Tally
				s := c.sink(t, Options{Metrics: &counts})
				if errs := writeAll(t, s, put("i", "a", "{}"), put("i", "b", "{}"), put("j", "a", "{}")); errs != nil {
					t.Error(errs)
				}
				if len(c.requests) != 2 || len(c.requests[1]) != 3 {
					t.Errorf("requests %q, want all of the first again", c.requests)
				}
				if retried := counts.Sum("sluice_document_retries_total"); retried != 3 {
					t.Errorf("retried %d", retried)
				}
			})
		})
	}
}

// A write under an alias is answered under its index.
func TestAlias(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cluster{aliases: map[string]string{"i": "i-1", "j": "j-1", "k": "i"}}
		s := c.sink(t, Options{RequireAlias: true})
		if errs := writeAll(t, s, put("i", "a", "{}"), put("j", "a", "{}"), put("k", "a", "{}")); errs != nil {
			t.Error(errs)
		}
		if len(c.requests) != 1 || !strings.Contains(c.paths[0], "?require_alias=true&") {
			t.Errorf("%q %q", c.requests, c.paths)
		}
	})
}

func TestRequestThatIsTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cluster{request: func(_ int, ws []string) *reply {
			if n := len(strings.Join(ws, "")); n > 100 {
				return &reply{status: 413}
			}
			return nil
		}}
		s := c.sink(t, Options{})
		var ops []document.Op
		for i := range 7 {
			ops = append(ops, put("i", fmt.Sprint(i), fmt.Sprintf(`{"x":%q}`, strings.Repeat("x", 40))))
		}
		ops[3].Body = []byte(fmt.Sprintf(`{"x":%q}`, strings.Repeat("x", 100)))
		errs := writeAll(t, s, ops...)
		for i := range ops {
			if (i == 3) != (errs[i] != nil) {
				t.Errorf("%d: %v", i, errs[i])
			}
		}
		if !sluice.IsPermanent(errs[3]) || !strings.Contains(errs[3].Error(), "413") {
			t.Error(errs[3])
		}
		if len(c.live()) != 6 {
			t.Errorf("%d documents", len(c.live()))
		}
	})
}

// When one operation makes the cluster refuse the whole request, the Sink finds
// it and writes the others.
func TestAnOperationThatSpoilsItsRequestIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cluster{request: func(_ int, ws []string) *reply {
			if strings.Contains(strings.Join(ws, ""), "bad") {
				return &reply{status: 400, body: `{"error":{"type":"action_request_validation_exception","reason":"Validation Failed: 1: …;"}}`}
			}
			return nil
		}}
		s := c.sink(t, Options{})
		var ops []document.Op
		for i := range 20 {
			ops = append(ops, put("i", fmt.Sprint(i), "{}"))
		}
		ops[7].ID, ops[8].ID = "bad7", "bad8"
		errs := writeAll(t, s, ops...)
		for i := range ops {
			if bad := i == 7 || i == 8; bad != (errs[i] != nil) || bad && !sluice.IsPermanent(errs[i]) {
				t.Errorf("%d: %v", i, errs[i])
			}
		}
		if len(c.live()) != 18 {
			t.Errorf("%d documents", len(c.live()))
		}
	})
}

// An operation that could never be written is rejected once, and not sent.
func TestAnInvalidOperationIsNotSent(t *testing.T) {
	long := strings.Repeat("é", 257)
	for _, tt := range []struct {
		op   document.Op
		want string
	}{
		{put("i", "x", ""), "not a JSON object"},
		{put("i", "x", "null"), "not a JSON object"},
		{put("i", "x", "[]"), "not a JSON object"},
		{put("i", "x", "{"), "not a JSON object"},
		{put("i", "x", "{\n\"a\":hidden}"), "not a JSON object: invalid at byte"},
		{put("i", "x", "{\"a\":\"b\nc\"}"), "not a JSON object: invalid at byte"},
		{put("i", "", "{}"), "the ID is empty"},
		{put("i", long, "{}"), "the ID has 514 bytes"},
		{put("i", "\xff", "{}"), "UTF-8"},
		{put("", "x", "{}"), "the Index is empty"},
		{put("\xff", "x", "{}"), "UTF-8"},
		{document.Op{Action: document.Delete, Index: "i", ID: "x", Routing: "\xff"}, "UTF-8"},
		{document.Op{Index: "i", ID: "x"}, "the Action is Action(0)"},
		{putAt("i", "x", -1, "{}"), "the Version is -1"},
		{document.Op{Action: document.Delete, Index: "i", ID: "x", Version: 1}, "no Fence"},
		{document.Op{Action: document.Delete, Index: "i", ID: "x", Fence: 9}, "the Fence is Fence(9)"},
		{document.Op{Action: document.Delete, Index: "i", ID: "x", Fence: document.Exact}, "want a Sequence"},
		{document.Op{Action: document.Delete, Index: "i", ID: "x", Fence: document.Unchanged}, "want the Revision"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var c cluster
			var counts tally.Tally
			s := c.sink(t, Options{Metrics: &counts})
			errs := writeAll(t, s, put("i", "first", "{}"), tt.op, put("i", "last", "{}"))
			if errs == nil || errs[0] != nil || errs[2] != nil || !sluice.IsPermanent(errs[1]) || !strings.Contains(errs[1].Error(), tt.want) {
				t.Errorf("%v, want one with %q", errs, tt.want)
			}
			if errs != nil && strings.Contains(errs[1].Error(), "hidden") {
				t.Errorf("the error quotes the document: %v", errs[1])
			}
			c.expect(t, []string{"i+first={}", "i+last={}"})
			if rejected := counts.Sum("sluice_documents_rejected_total"); rejected != 1 {
				t.Errorf("rejected %d times", rejected)
			}
			var e *document.Error
			if err := s.Write(t.Context(), tt.op); !errors.As(err, &e) || e.Ref != tt.op.Ref() {
				t.Error(err)
			}
		})
	}
}

// A canceled caller is withdrawn before its write is sent, and waits for the
// true result afterwards.
func TestCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cluster{delay: time.Second}
		s := c.sink(t, Options{Linger: time.Hour})
		cause := errors.New("stopped")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Millisecond, func() { cancel(cause) })
		if err := s.Write(ctx, put("i", "a", "{}")); !errors.Is(err, cause) || !strings.Contains(err.Error(), "not sent") {
			t.Error(err)
		}
		c.expect(t)
		s = c.sink(t, Options{})
		ctx, cancel = context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second/2, func() { cancel(cause) })
		if err := s.Write(ctx, put("i", "a", "{}")); err != nil {
			t.Error(err)
		}
		if len(c.live()) != 1 {
			t.Error("not written")
		}
	})
}
