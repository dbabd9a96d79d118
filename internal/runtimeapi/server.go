package runtimeapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Answer is the function's response to one invocation.
type Answer struct {
	RequestID string
	Payload   []byte // of a response
	Failed    bool   // posted to /error
	ErrorType string // of an error
	Message   string // of an error
	At        time.Time
}

// InitError is what a function posted to /runtime/init/error.
type InitError struct{ Type, Message string }

func (e *InitError) Error() string {
	return fmt.Sprintf("function failed to initialise: %s: %s", e.Type, e.Message)
}

type invocation struct {
	id       string
	payload  []byte
	deadline time.Time
	answer   chan Answer // buffered
}

// server speaks the Runtime API. Invocations wait in a channel until the
// function asks for the next one.
type server struct {
	http     *http.Server
	addr     string
	queue    chan *invocation
	polled   chan struct{} // closed at the first poll
	sigterm  chan struct{} // closed when the function registers an extension
	initErr  chan *InitError
	pollOnce sync.Once
	termOnce sync.Once

	mu       sync.Mutex
	firstAt  time.Time
	requests int
	inFlight map[string]*invocation
}

func newServer() (*server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("runtime API: %w", err)
	}
	s := &server{
		addr:     l.Addr().String(),
		queue:    make(chan *invocation),
		polled:   make(chan struct{}),
		sigterm:  make(chan struct{}),
		initErr:  make(chan *InitError, 1),
		inFlight: map[string]*invocation{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /2018-06-01/runtime/invocation/next", s.next)
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/response", s.response)
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/error", s.failure)
	mux.HandleFunc("POST /2018-06-01/runtime/init/error", s.initFailure)
	mux.HandleFunc("POST /2020-01-01/extension/register", s.register)
	mux.HandleFunc("GET /2020-01-01/extension/event/next", s.extensionNext)
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go s.http.Serve(l) //nolint:errcheck // ends with ErrServerClosed by close
	return s, nil
}

// close ends the long polls, too: their connections break.
func (s *server) close() error { return s.http.Close() }

// submit passes payload to the next request and returns where its response
// arrives.
func (s *server) submit(ctx context.Context, payload []byte, timeout time.Duration, gone <-chan struct{}) (*invocation, error) {
	s.mu.Lock()
	s.requests++
	inv := &invocation{
		id:      fmt.Sprintf("00000000-0000-4000-8000-%012d", s.requests),
		payload: payload,
		answer:  make(chan Answer, 1),
	}
	s.inFlight[inv.id] = inv
	s.mu.Unlock()
	inv.deadline = time.Now().Add(timeout)
	select {
	case s.queue <- inv:
		return inv, nil
	case <-gone:
		return nil, ErrExited
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *server) next(w http.ResponseWriter, r *http.Request) {
	s.pollOnce.Do(func() {
		s.mu.Lock()
		s.firstAt = time.Now()
		s.mu.Unlock()
		close(s.polled)
	})
	select {
	case inv := <-s.queue:
		h := w.Header()
		h.Set("Content-Type", "application/json")
		h.Set("Lambda-Runtime-Aws-Request-Id", inv.id)
		h.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(inv.deadline.UnixMilli(), 10))
		h.Set("Lambda-Runtime-Invoked-Function-Arn", functionARN)
		h.Set("Lambda-Runtime-Trace-Id", "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=0")
		w.Write(inv.payload) //nolint:errcheck // a function that went away is seen by its exit
	case <-r.Context().Done():
	}
}

func (s *server) response(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	s.finish(w, r, err, Answer{Payload: body})
}

func (s *server) failure(w http.ResponseWriter, r *http.Request) {
	e, err := readError(r)
	s.finish(w, r, err, Answer{Failed: true, ErrorType: e.Type, Message: e.Message})
}

// finish takes the first response to an invocation and refuses what the service
// would refuse: an unknown id, a second response, a truncated body.
func (s *server) finish(w http.ResponseWriter, r *http.Request, err error, a Answer) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	a.RequestID, a.At = r.PathValue("id"), time.Now()
	s.mu.Lock()
	inv := s.inFlight[a.RequestID]
	delete(s.inFlight, a.RequestID)
	s.mu.Unlock()
	if inv == nil {
		http.Error(w, "no such invocation in flight: "+a.RequestID, http.StatusForbidden)
		return
	}
	w.WriteHeader(http.StatusAccepted)
	inv.answer <- a
}

func (s *server) initFailure(w http.ResponseWriter, r *http.Request) {
	e, err := readError(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusAccepted)
	select {
	case s.initErr <- &e:
	default:
	}
}

func readError(r *http.Request) (InitError, error) {
	var e struct{ ErrorType, ErrorMessage string }
	if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
		return InitError{}, fmt.Errorf("error body: %w", err)
	}
	return InitError{Type: e.ErrorType, Message: e.ErrorMessage}, nil
}

func (s *server) register(w http.ResponseWriter, _ *http.Request) {
	s.termOnce.Do(func() { close(s.sigterm) })
	w.Header().Set("Lambda-Extension-Identifier", "00000000-0000-4000-8000-00000000000e")
	w.WriteHeader(http.StatusOK)
}

// extensionNext never answers: the extension registered for no event.
func (s *server) extensionNext(_ http.ResponseWriter, r *http.Request) {
	<-r.Context().Done()
}

// ErrExited says that the function's process ended without an answer; Lambda
// reports it as Runtime.ExitError.
var ErrExited = errors.New("function process exited")

// ErrTimedOut says that the deadline passed without an answer and the process
// was killed; Lambda reports it as "Task timed out".
var ErrTimedOut = errors.New("function timed out")

const functionARN = "arn:aws:lambda:us-east-1:000000000000:function:sluice"
