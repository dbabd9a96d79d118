package daemon

import (
	"net/http"
)

// startedz reports whether the daemon has begun to read, for those who wait for a
// deployment. Later failures belong to readyz: a Kubernetes StatefulSet may wait
// for the old pod before it starts the one that repairs an outage.
func startedz(starting func() string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		okUnless(w, starting())
	})
}

// starting returns what the sources must open before they read, and "" afterwards.
// It names no cause, because anybody who reaches the daemon may read it.
func (s *sources) starting() string {
	switch {
	case s.poller != nil && !closed(s.poller.Opened()):
		return "starting: the streams are not open yet"
	case s.consumer != nil && !closed(s.consumer.Opened()):
		return "starting: the queues are not open yet"
	}
	return ""
}

// openings are closed when the sources read.
func (s *sources) openings() (all []<-chan struct{}) {
	if s.poller != nil {
		all = append(all, s.poller.Opened())
	}
	if s.consumer != nil {
		all = append(all, s.consumer.Opened())
	}
	return all
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
