package opensearch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/outcomes"
)

const errorBody = `{"error":{"root_cause":[{"type":%[2]q,"reason":"r"}],"type":%[2]q,"reason":"r"},"status":%[1]d}`

var overloads = []struct {
	status    int
	typ       string // "": a body that is not the cluster's
	want      bool
	permanent bool
}{
	{429, "rejected_execution_exception", true, false},    // of OpenSearch
	{429, "es_rejected_execution_exception", true, false}, // of Elasticsearch
	{429, "circuit_breaking_exception", true, false},
	{503, "circuit_breaking_exception", true, false}, // of older versions
	{429, "", true, false},                           // of the service's admission control, or a proxy
	{429, "cluster_block_exception", false, false},   // a disk is full
	{403, "cluster_block_exception", false, false},
	{503, "cluster_block_exception", false, false}, // no cluster manager
	{503, "unavailable_shards_exception", false, false},
	{503, "", false, false},
	{502, "", false, false},
	{504, "", false, false},
	{500, "exception", false, false},
	{404, "index_not_found_exception", false, false},
	{403, "security_exception", false, false},
	{400, "mapper_parsing_exception", false, true},
}

// answers is a cluster that answers every request alike.
func answers(status int, header http.Header, body string) roundTrip {
	return func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
	}
}

// Every refusal for load is Overloaded: of an item, of a request, of a read. No other
// error is.
func TestOverloaded(t *testing.T) {
	check := func(t *testing.T, what string, err error, want, permanent bool) {
		t.Helper()
		var told *document.Error
		var status *StatusError
		if err == nil || outcomes.IsOverloaded(err) != want || sluice.IsPermanent(err) != permanent || !errors.As(err, &told) && !errors.As(err, &status) {
			t.Errorf("%s: overloaded %v, permanent %v: %v", what, outcomes.IsOverloaded(err), sluice.IsPermanent(err), err)
		}
	}
	for _, tt := range overloads {
		synctest.Test(t, func(t *testing.T) {
			what := fmt.Sprintf("%d %s", tt.status, tt.typ)
			body := fmt.Sprintf(errorBody, tt.status, tt.typ)
			if tt.typ == "" {
				body = "<html>429</html>"
			}
			c := &cluster{item: func(int, string) *verdict { return &verdict{status: tt.status, typ: tt.typ, reason: "r"} }}
			check(t, "item, "+what, c.sink(t, Options{}).Write(t.Context(), put("i", "a", "{}")), tt.want, tt.permanent)
			c = &cluster{request: func(int, []string) *reply { return &reply{status: tt.status, body: body} }}
			s := c.sink(t, Options{})
			check(t, "request, "+what, s.Write(t.Context(), put("i", "a", "{}")), tt.want, tt.permanent)
		})
	}
}

// A read is refused for load as a write is.
func TestOverloadedRead(t *testing.T) {
	for _, tt := range overloads {
		synctest.Test(t, func(t *testing.T) {
			client, err := connect(Connection{Timeout: time.Minute}.withDefaults(), answers(tt.status, nil, fmt.Sprintf(errorBody, tt.status, tt.typ)))
			if err != nil {
				t.Fatal(err)
			}
			_, err = client.Get(t.Context(), []document.Ref{{Index: "i", ID: "a"}})
			var status *StatusError
			if !errors.As(err, &status) || outcomes.IsOverloaded(err) != tt.want {
				t.Errorf("%d %s: %v", tt.status, tt.typ, err)
			}
		})
	}
	for typ, want := range map[string]bool{"rejected_execution_exception": true, "index_not_found_exception": false} {
		client, err := connect(Connection{Timeout: time.Minute}.withDefaults(), answers(200, nil, fmt.Sprintf(`{"docs":[{"_index":"i","_id":"a","error":{"type":%q,"reason":"r"}}]}`, typ)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err = client.Get(t.Context(), []document.Ref{{Index: "i", ID: "a"}}); err == nil || outcomes.IsOverloaded(err) != want {
			t.Errorf("one document, %s: %v", typ, err)
		}
	}
}

// A Retry-After is kept: between tries, and by who tries when the sink gives up.
func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		start := time.Now()
		refuse := answers(429, http.Header{"Retry-After": {"20"}}, `{"message":"Too Many Requests"}`)
		client, err := connect(Connection{Timeout: time.Minute}.withDefaults(), roundTrip(func(r *http.Request) (*http.Response, error) {
			at = append(at, time.Since(start).Truncate(time.Second))
			return refuse(r)
		}))
		if err != nil {
			t.Fatal(err)
		}
		s, err := New(client, Options{})
		if err != nil {
			t.Fatal(err)
		}
		err = s.Write(t.Context(), put("i", "a", "{}"))
		retry, ok := errors.AsType[*outcomes.Retry](err)
		if !ok || retry.After != 20*time.Second || !outcomes.IsOverloaded(err) || sluice.IsPermanent(err) {
			t.Errorf("%v", err)
		}
		if fmt.Sprint(at) != "[0s 20s 40s]" {
			t.Errorf("tried at %v", at)
		}
	})
}

// A write whose time ends during its third try returns the refusal of its second, and
// counts the tries of all its commits.
func TestRefusedBeforeTheTimeRanOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cluster{
			item: func(int, string) *verdict { return &verdict{status: 429} },
			request: func(n int, _ []string) *reply {
				if n < 2 {
					return nil
				}
				return &reply{hang: true}
			},
		}
		s := c.sink(t, Options{Timeout: time.Hour})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := s.Write(ctx, put("i", "a", "{}"))
		var e *document.Error
		if !errors.As(err, &e) || e.Status != 429 || !outcomes.IsOverloaded(err) || !strings.Contains(err.Error(), "given up after 3 tries") {
			t.Error(err)
		}
		expectFree(t, s)
	})
}

// The document fails after its refusal for load, and then the time of the write ends.
// The refusal does not count: the failure was later.
func TestFailedBeforeTheTimeRanOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cluster{
			item: func(n int, _ string) *verdict { return &verdict{status: []int{429, 503}[min(n, 1)]} },
			request: func(n int, _ []string) *reply {
				if n < 2 {
					return nil
				}
				return &reply{hang: true}
			},
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := c.sink(t, Options{Timeout: time.Hour}).Write(ctx, put("i", "a", "{}"))
		var e *document.Error
		if !errors.As(err, &e) || e.Status != 503 || outcomes.IsOverloaded(err) {
			t.Error(err)
		}
	})
}

// The time of a refused write ends while it waits for another one's request: before
// its batch is sent, or after that for as many requests as the cluster bears.
func TestRefusedBeforeItsTurn(t *testing.T) {
	for _, sent := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var s *Sink
			var other sync.WaitGroup
			c := cluster{request: func(n int, _ []string) *reply {
				switch {
				case n > 0:
					return &reply{hang: true}
				case sent:
					s.limit.running = 9
				default:
					other.Go(func() {
						ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
						defer cancel()
						if err := s.Write(ctx, put("i", "b", "{}")); err == nil || outcomes.IsOverloaded(err) {
							t.Error(err)
						}
					})
				}
				return nil
			}}
			c.item = func(int, string) *verdict { return &verdict{status: 429} }
			s = c.sink(t, Options{Timeout: 3 * time.Hour, InFlight: 1, Backoff: time.Second})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			err := s.Write(ctx, put("i", "a", "{}"))
			if !outcomes.IsOverloaded(err) {
				t.Error(err)
			}
			other.Wait()
		})
	}
}
