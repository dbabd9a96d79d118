package opensearch

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/internal/retrying"
)

type heard struct {
	n    atomic.Int64
	last atomic.Value // string
}

func (h *heard) Retrying(err error) { h.last.Store(err.Error()); h.n.Add(1) }

// A caller hears that a write is tried again long before the sink gives up: while
// an index is read-only, and while there is no answer for whole requests.
func TestCallerHearsOfRetries(t *testing.T) {
	for name, c := range map[string]*cluster{
		"cluster_block_exception": {item: func(int, string) *verdict {
			return &verdict{status: 429, typ: "cluster_block_exception", reason: "index [i] blocked by: flood-stage watermark"}
		}},
		"status 503": {request: func(int, []string) *reply { return &reply{status: 503, body: "no node"} }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := c.sink(t, Options{})
				var one, other heard
				written := make(chan error, 2)
				for id, h := range map[string]*heard{"a": &one, "b": &other} {
					go func() { written <- s.Write(retrying.With(t.Context(), h), put("i", id, "{}")) }()
				}
				time.Sleep(5 * time.Second)
				synctest.Wait()
				for _, h := range []*heard{&one, &other} {
					if last, _ := h.last.Load().(string); h.n.Load() == 0 || !strings.Contains(last, name) {
						t.Errorf("heard %d times, last %q", h.n.Load(), last)
					}
				}
				select {
				case err := <-written:
					t.Errorf("given up already: %v", err)
				default:
				}
				for range 2 {
					if err := <-written; err == nil {
						t.Error("written at last")
					}
				}
			})
		})
	}
}
