package streamtest

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"slices"
	"strconv"

	"github.com/sluicehq/sluice/internal/backoff"
)

// spoiler sends a proxy's requests to the server, with faults.
type spoiler struct{ *Proxy }

func (p spoiler) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, fmt.Errorf("%w: the client's request ended early: %w", errBroken, err)
		}
	}
	f := p.fault(req, body)
	if f == nil {
		return p.forward(req, body)
	}
	return p.spoil(f, req, body)
}

// fault returns the fault for the request, or nil.
func (p spoiler) fault(req *http.Request, body []byte) *ProxyFault {
	p.mu.Lock()
	faults := slices.Clone(p.faults)
	p.mu.Unlock()
	for _, f := range faults {
		if !f.matches(req, body) {
			continue
		}
		p.mu.Lock()
		takes := f.takes(req.Method + " " + req.URL.Path + " " + req.Header.Get("X-Amz-Target"))
		p.mu.Unlock()
		if takes {
			return &f.ProxyFault
		}
	}
	return nil
}

// forward sends the request with the given body.
func (p spoiler) forward(req *http.Request, body []byte) (*http.Response, error) {
	out := req.Clone(req.Context())
	if req.Body != nil {
		out.ContentLength = int64(len(body)) // a chunked request stays chunked
		out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		out.Body, _ = out.GetBody()
	}
	p.count(&p.counts.Forwarded)
	return p.transport.RoundTrip(out)
}

// spoil applies f to the request, in the order of its way.
func (p spoiler) spoil(f *ProxyFault, req *http.Request, body []byte) (*http.Response, error) {
	if f.Delay > 0 || f.DelayAnswer > 0 {
		p.count(&p.counts.Delayed)
	}
	if err := backoff.Sleep(req.Context(), f.Delay); err != nil {
		return nil, err
	}
	switch {
	case f.Drop:
		p.count(&p.counts.Dropped)
		return nil, errBroken
	case f.Status != 0:
		p.count(&p.counts.Answered)
		return ownAnswer(req, f.Status, f.Header, []byte(f.Body)), nil
	}
	resp, answer, err := p.ask(f, req, body)
	if err != nil {
		return nil, err
	}
	if err := backoff.Sleep(req.Context(), f.DelayAnswer); err != nil {
		return nil, err
	}
	switch {
	case f.DropAnswer:
		p.count(&p.counts.AnswersDropped)
		return nil, errBroken
	case f.Cut:
		p.count(&p.counts.Cut)
		if len(answer) < 2 {
			return nil, errBroken
		}
		resp.Body = io.NopCloser(io.MultiReader(bytes.NewReader(answer[:len(answer)/2]), broken{}))
	}
	return resp, nil
}

// ask returns the server's response, read completely.
func (p spoiler) ask(f *ProxyFault, req *http.Request, body []byte) (*http.Response, []byte, error) {
	if f.Rewrite != nil {
		return p.rewrite(f, req, body)
	}
	resp, answer, err := p.exchange(req, body)
	if err == nil && f.Duplicate {
		p.count(&p.counts.Duplicated)
		_, _, err = p.exchange(req, body)
	}
	return resp, answer, err
}

// exchange is forward with the response read completely.
func (p spoiler) exchange(req *http.Request, body []byte) (*http.Response, []byte, error) {
	resp, err := p.forward(req, body)
	if err != nil {
		return nil, nil, err
	}
	answer, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		return nil, nil, fmt.Errorf("%w: so did the server: %w", errBroken, err)
	}
	resp.Body = io.NopCloser(bytes.NewReader(answer))
	return resp, answer, nil
}

func (p spoiler) rewrite(f *ProxyFault, req *http.Request, body []byte) (*http.Response, []byte, error) {
	p.count(&p.counts.Rewritten)
	plain := req.Clone(req.Context())
	plain.Header.Del("Accept-Encoding")
	var last *http.Response
	var failed error
	answer := f.Rewrite(body, func(body []byte) (int, []byte) {
		resp, answer, err := p.exchange(plain, body) //nolint:bodyclose // exchange has read and closed it
		if err != nil {
			failed = err
			return 0, nil
		}
		last = resp
		return resp.StatusCode, answer
	})
	switch {
	case failed != nil:
		return nil, nil, failed
	case last == nil:
		return ownAnswer(req, http.StatusOK, http.Header{"Content-Type": {contentType}}, answer), answer, nil
	}
	last.Body = io.NopCloser(bytes.NewReader(answer))
	last.Header.Set("Content-Length", strconv.Itoa(len(answer)))
	if last.Header.Get("X-Amz-Crc32") != "" { // clients of DynamoDB check it
		last.Header.Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE(answer)), 10))
	}
	return last, answer, nil
}

func ownAnswer(req *http.Request, status int, header http.Header, body []byte) *http.Response {
	header = header.Clone()
	if header == nil {
		header = http.Header{}
	}
	header.Set("Content-Length", strconv.Itoa(len(body)))
	return &http.Response{
		Status: strconv.Itoa(status) + " " + http.StatusText(status), StatusCode: status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, ContentLength: int64(len(body)), Body: io.NopCloser(bytes.NewReader(body)), Request: req,
	}
}

// broken is the end of an interrupted body.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errBroken }
