package streamtest

import (
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"
	"time"
)

// Proxy is an HTTP proxy in front of one real server, such as DynamoDB Local,
// ElasticMQ or OpenSearch. It passes everything through unchanged, including
// kept-alive connections, bodies of unknown length and compressed ones.
// [Proxy.Fail] makes it fail: a client then meets lost requests, lost responses
// and partial failures.
//
// The Host header stays as the client wrote it. The proxy reads a request
// completely before it forwards it. All methods are safe for concurrent use.
type Proxy struct {
	failer
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

// ProxyCounts counts what a Proxy did.
type ProxyCounts struct {
	Requests  int // from clients
	Forwarded int // requests sent to the server, including duplicates

	// Requests by fault; one can count for several.
	Delayed        int // the request or its response
	Dropped        int // before the server
	AnswersDropped int
	Answered       int // by the proxy, instead of the server
	Duplicated     int
	Cut            int
	Rewritten      int
}

// NewProxy returns a proxy on a loopback port in front of the server at target,
// such as "http://127.0.0.1:8000". It ends with the test.
//
// Without a test, in an Example or a program, t is nil: then mistakes panic and
// [Proxy.Close] ends it.
func NewProxy(t testing.TB, target string) *Proxy {
	p := &Proxy{failer: failer{t, "streamtest: proxy: "}, transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 100}}
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
		FlushInterval: -1, // pass data on as it comes
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

// URL returns the endpoint for clients, instead of the server's.
func (p *Proxy) URL() string { return p.url }

// Close breaks all connections. The end of the test calls it.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	p.server.Close()
	p.serving.Wait()
	p.transport.CloseIdleConnections()
}

// Counts returns the counts so far.
func (p *Proxy) Counts() ProxyCounts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts
}

// Fail registers a fault. The returned function removes it.
func (p *Proxy) Fail(f ProxyFault) (remove func()) {
	if err := f.validate(); err != nil {
		p.fatalf("Fail: %v", err)
	}
	return register(&p.mu, &p.faults, &proxyRule{ProxyFault: f, kinds: map[string]uint64{}})
}

// ServeHTTP forwards one request.
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

// errBroken is the reason why a client gets no response, or part of one.
var errBroken = errors.New("streamtest: the proxy breaks the connection")

// failed ends a request without a response.
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
