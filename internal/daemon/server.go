package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"
	"sync/atomic"
	"time"
)

// server answers those who watch the daemon.
type server struct {
	http     http.Server
	address  net.Addr
	done     chan struct{} // closed when it has ended
	stopping atomic.Bool
}

// endpoints are a server's endpoints besides readyz, by the patterns of
// [http.ServeMux].
type endpoints map[string]http.Handler

// serve listens on address and answers until stop. unready writes the whole of why
// the daemon does not do its work, for its operators, or what others may read; it
// writes nothing when it does.
func serve(address string, also endpoints, unready func(*http.Request) []string, logger *slog.Logger) (*server, error) {
	l, err := listen(address)
	if err != nil {
		return nil, err
	}
	s := &server{address: l.Addr(), done: make(chan struct{})}
	mux := http.NewServeMux()
	for pattern, h := range also {
		mux.Handle(pattern, h)
	}
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		reasons := unready(r)
		if s.stopping.Load() {
			reasons = []string{"stopping"}
		}
		okUnless(w, strings.Join(reasons, "\n"))
	})
	s.http = http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 5 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
	logger.Info("listening", "address", s.address.String())
	go func() {
		defer close(s.done)
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			logger.Error("metrics and health are not served any more", "error", err)
		}
	}()
	return s, nil
}

// okUnless answers a probe, which why refuses.
func okUnless(w http.ResponseWriter, why string) {
	if why != "" {
		http.Error(w, why, http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// stop ends the server; a slow scrape is cut off.
func (s *server) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	if s.http.Shutdown(ctx) != nil {
		s.http.Close()
	}
	<-s.done
}

// profiles are those of package pprof, which serves them with a deadline of
// their own.
func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("POST /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}
