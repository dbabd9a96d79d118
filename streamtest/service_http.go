package streamtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehq/sluice/internal/backoff"
)

const (
	contentType = "application/x-amz-json-1.0"
	maxRequest  = 1 << 20
)

var errEnded = errors.New("streamtest: the service has ended with its test")

// answer is the response to a call, and how to send it.
type answer struct {
	status int
	body   []byte
	at     time.Time // by the service's clock
	nth    int       // number of the call
	fault  effect
}

func (a *answer) header() http.Header {
	return http.Header{
		"Content-Type":     {contentType},
		"Content-Length":   {strconv.Itoa(len(a.body))},
		"Date":             {a.at.UTC().Format(http.TimeFormat)},
		"X-Amz-Crc32":      {strconv.FormatUint(uint64(crc32.ChecksumIEEE(a.body)), 10)},
		"X-Amzn-Requestid": {fmt.Sprintf("STREAMTEST%016d", a.nth)},
	}
}

// transport passes requests to the service on the caller's goroutine.
type transport struct{ s *Service }

func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		var err error
		body, err = readRequest(req.Body, req.ContentLength)
		req.Body.Close()
		if err != nil {
			return nil, err
		}
	}
	ctx := req.Context()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	a, err := t.s.answer(ctx, req.Method, req.Header.Get("X-Amz-Target"), body)
	if err != nil {
		return nil, err
	}
	sent := a.body
	if a.fault.cut {
		sent = sent[:len(sent)/2]
	}
	r := &reply{ctx, bytes.NewReader(sent), a.fault.cut}
	return &http.Response{
		Status: strconv.Itoa(a.status) + " " + http.StatusText(a.status), StatusCode: a.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.header(), Body: r, ContentLength: int64(len(a.body)), Request: req,
	}, nil
}

func readRequest(r io.Reader, length int64) ([]byte, error) {
	if length < 0 || length > maxRequest {
		return io.ReadAll(io.LimitReader(r, maxRequest))
	}
	body := make([]byte, length)
	_, err := io.ReadFull(r, body)
	return body, err
}

// reply is the body of a response in memory. Like a connection's body it fails
// when its request's context ends.
type reply struct {
	ctx  context.Context //nolint:containedctx // an http.Response's body belongs to its request
	rest *bytes.Reader
	cut  bool
}

func (r *reply) Read(p []byte) (int, error) {
	if err := context.Cause(r.ctx); err != nil {
		return 0, err
	}
	n, err := r.rest.Read(p)
	if r.cut && errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func (r *reply) Close() error { return nil }

// ServeHTTP responds to one call of the API.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	a, err := s.answer(r.Context(), r.Method, r.Header.Get("X-Amz-Target"), body)
	if err != nil {
		panic(http.ErrAbortHandler) // closes the connection without a response
	}
	for k, v := range a.header() {
		w.Header()[k] = v
	}
	w.WriteHeader(a.status)
	if !a.fault.cut {
		_, _ = io.Copy(w, bytes.NewReader(a.body)) // the client may have gone
		return
	}
	_, _ = w.Write(a.body[:len(a.body)/2])
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// wait waits as long as the response takes. An error means that there is no
// response.
func (s *Service) wait(ctx context.Context, a *answer) error {
	if a.fault.delay <= 0 && !a.fault.hang {
		return nil
	}
	// A context of its own, because the clock of a testing/synctest bubble advances
	// only for channels made in it.
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer register(&s.mu, &s.pending, &end)()
	if s.hasEnded() {
		return errEnded
	}
	if a.fault.hang {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return backoff.Sleep(ctx, a.fault.delay)
}

// target splits an X-Amz-Target header.
func target(header string) (api, op string) {
	api, op, _ = strings.Cut(header, ".")
	return api, op
}
