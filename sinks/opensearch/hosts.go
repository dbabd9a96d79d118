package opensearch

import (
	"errors"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/opensearch-project/opensearch-go/v2/opensearchtransport"
)

// restTime is how long an unreachable host is skipped.
const restTime = 10 * time.Second

// hosts chooses a host for each request, in turn, and skips recently unreachable
// ones unless all are. The transport's own choice skips a host for a minute when a
// caller cancelled a request, and keeps timers, which a frozen Lambda does not
// run.
type hosts struct {
	conns []*opensearchtransport.Connection

	mu   sync.Mutex
	next int
	down []time.Time // by host: when it was unreachable; zero: reachable
}

func newHosts(urls []*url.URL) *hosts {
	h := &hosts{down: make([]time.Time, len(urls))}
	for _, u := range urls {
		h.conns = append(h.conns, &opensearchtransport.Connection{URL: u})
	}
	return h
}

// Next returns the next host. If all are skipped, it returns the one skipped for
// longest.
func (h *hosts) Next() (*opensearchtransport.Connection, error) {
	if len(h.conns) == 0 {
		return nil, errors.New("there is no host")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	best := h.next % len(h.conns)
	for i := range h.conns {
		n := (h.next + i) % len(h.conns)
		if h.down[n].IsZero() || time.Since(h.down[n]) >= restTime {
			best = n
			break
		}
		if h.down[n].Before(h.down[best]) {
			best = n
		}
	}
	h.next = best + 1
	return h.conns[best], nil
}

// reached notes whether the named host was reachable.
func (h *hosts) reached(host string, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := slices.IndexFunc(h.conns, func(c *opensearchtransport.Connection) bool { return c.URL.Host == host })
	switch {
	case n < 0:
	case ok:
		h.down[n] = time.Time{}
	default:
		h.down[n] = time.Now()
	}
}

// OnSuccess and OnFailure do nothing, because they do not get the reason. wire
// does.
func (h *hosts) OnSuccess(*opensearchtransport.Connection) error { return nil }
func (h *hosts) OnFailure(*opensearchtransport.Connection) error { return nil }

// URLs returns those of all hosts.
func (h *hosts) URLs() []*url.URL {
	urls := make([]*url.URL, len(h.conns))
	for i, c := range h.conns {
		urls[i] = c.URL
	}
	return urls
}
