package streamtest

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"
)

// Proxy is an HTTP proxy in front of one real server, such as DynamoDB Local,
// ElasticMQ or OpenSearch. It passes everything through as it is, kept-alive
// connections, bodies of unknown length and compressed ones too, until it is
// told by [Proxy.Fail] what to spoil: so that a client of the server meets
// lost requests, lost answers and partial failures.
//
// The Host header passes as the client wrote it. Requests are read whole before
// they are passed on. All methods are safe for concurrent use.
type Proxy struct {
	t         testing.TB
	url       string
	server    *http.Server
	reverse   *httputil.ReverseProxy
	transport interface {
		http.RoundTripper
		CloseIdleConnections()
	}
	serving sync.WaitGroup

	mu     sync.Mutex
	ended  bool
	faults []*proxyRule
	counts ProxyCounts
}

// ProxyCounts say what a Proxy did.
type ProxyCounts struct {
	Requests  int // of clients
	Forwarded int // requests that the server was sent, duplicates too

	// Requests by what was done to them; one can count for several.
	Delayed        int // they or their answers
	Dropped        int // before the server
	AnswersDropped int
	Answered       int // by the proxy, in place of the server
	Duplicated     int
	Cut            int
	Rewritten      int
}

// NewProxy returns a proxy on a loopback port in front of the server at
// target, such as "http://127.0.0.1:8000". It ends with the test.
//
// In an Example or a program there is no test, and t is nil: then mistakes
// panic and [Proxy.Close] ends it.
func NewProxy(t testing.TB, target string) *Proxy {
	p := &Proxy{t: t, transport: &http.Transport{DisableCompression: true}}
	p.helper()
	to, err := url.Parse(target)
	if err != nil || to.Scheme != "http" && to.Scheme != "https" || to.Host == "" {
		p.fatalf("NewProxy(%q): want the URL of a server, such as http://127.0.0.1:8000", target)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		p.fatalf("NewProxy: listen: %v", err)
	}
	silent := log.New(io.Discard, "", 0) // connections break on purpose
	p.url = "http://" + l.Addr().String()
	p.reverse = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Host = r.In.Host
		},
		Transport:     spoiler{p},
		FlushInterval: -1, // pass on what comes as it comes
		ErrorHandler:  p.failed,
		ErrorLog:      silent,
	}
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: time.Minute, ErrorLog: silent}
	p.serving.Go(func() { _ = p.server.Serve(l) }) // until Close
	if t != nil {
		t.Cleanup(p.Close)
	}
	return p
}

// URL returns the endpoint that clients are given in place of the server's.
func (p *Proxy) URL() string { return p.url }

// Close breaks all connections. It is called by the end of the test.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	p.server.Close()
	p.serving.Wait()
	p.transport.CloseIdleConnections()
}

// Counts returns what the proxy has done so far.
func (p *Proxy) Counts() ProxyCounts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts
}

// Fail registers a fault. The returned function removes it.
func (p *Proxy) Fail(f ProxyFault) (remove func()) {
	p.helper()
	if err := f.validate(); err != nil {
		p.fatalf("Fail: %v", err)
	}
	rule := &proxyRule{ProxyFault: f, kinds: map[string]uint64{}}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, rule)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.faults = slices.DeleteFunc(p.faults, func(x *proxyRule) bool { return x == rule })
	}
}

// ServeHTTP passes one request on.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	if p.ended {
		p.mu.Unlock()
		panic(http.ErrAbortHandler)
	}
	p.counts.Requests++
	p.serving.Add(1)
	p.mu.Unlock()
	defer p.serving.Done()
	p.reverse.ServeHTTP(w, r)
}

// errBroken is why a client gets no answer, or a part of one.
var errBroken = errors.New("streamtest: the proxy breaks the connection")

// failed ends a request that has no answer.
func (p *Proxy) failed(w http.ResponseWriter, _ *http.Request, err error) {
	if errors.Is(err, errBroken) {
		panic(http.ErrAbortHandler) // closes the connection
	}
	http.Error(w, "streamtest: proxy: the server does not answer: "+err.Error(), http.StatusBadGateway)
}

func (p *Proxy) count(n *int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*n++
}

func (p *Proxy) helper() {
	if p.t != nil {
		p.t.Helper()
	}
}

func (p *Proxy) fatalf(format string, args ...any) {
	msg := "streamtest: proxy: " + fmt.Sprintf(format, args...)
	if p.t == nil {
		panic(msg)
	}
	p.t.Helper()
	p.t.Fatal(msg)
}
