package streamtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

// origin is a server that counts what it sees.
type origin struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []string
	conns  int
}

// newOrigin starts a server whose answer to the n-th request is "answer n"
// when h is nil.
func newOrigin(t *testing.T, h http.HandlerFunc) *origin {
	o := &origin{}
	o.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h != nil {
			h(w, r)
			return
		}
		body, _ := io.ReadAll(r.Body)
		o.mu.Lock()
		defer o.mu.Unlock()
		o.bodies = append(o.bodies, string(body))
		w.Header().Set("X-Amz-Crc32", "1")
		fmt.Fprintf(w, "answer %d", len(o.bodies))
	}))
	o.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.conns++
		}
	}
	o.Start()
	t.Cleanup(o.Close)
	return o
}

func (o *origin) saw() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Join(o.bodies, " ")
}

// through returns a proxy in front of o, and a client of its own.
func (o *origin) through(t *testing.T) (*Proxy, *http.Client) {
	p := NewProxy(t, o.URL)
	tr := &http.Transport{DisableCompression: true}
	t.Cleanup(tr.CloseIdleConnections)
	return p, &http.Client{Transport: tr}
}

// post sends a request of an operation and returns its answer and what became
// of it.
func post(ctx context.Context, c *http.Client, url, op, body string) string {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return err.Error()
	}
	if op != "" {
		req.Header.Set("X-Amz-Target", "DynamoDB_20120810."+op)
	}
	return do(c, req)
}

func do(c *http.Client, req *http.Request) string {
	resp, err := c.Do(req)
	if err != nil {
		if errors.Is(err, io.EOF) {
			return "lost"
		}
		return "failed"
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "cut: " + string(answer)
	case err != nil:
		return err.Error()
	case resp.StatusCode != http.StatusOK:
		return fmt.Sprint(resp.StatusCode, " ", string(answer))
	}
	return string(answer)
}

func TestProxySpoils(t *testing.T) {
	for _, tt := range []struct {
		name  string
		fault ProxyFault
		want  string // the outcomes of the requests a to d
		saw   string
		count ProxyCounts
	}{
		{"drop", ProxyFault{Drop: true, Times: 1}, "lost, answer 1, answer 2, answer 3", "b c d",
			ProxyCounts{Dropped: 1, Forwarded: 3}},
		{"drop the answer", ProxyFault{DropAnswer: true, Times: 1}, "lost, answer 2, answer 3, answer 4", "a b c d",
			ProxyCounts{AnswersDropped: 1, Forwarded: 4}},
		{"cut", ProxyFault{Cut: true, Times: 2}, "cut: answ, cut: answ, answer 3, answer 4", "a b c d",
			ProxyCounts{Cut: 2, Forwarded: 4}},
		{"duplicate", ProxyFault{Duplicate: true, After: 1, Times: 1}, "answer 1, answer 2, answer 4, answer 5", "a b b c d",
			ProxyCounts{Duplicated: 1, Forwarded: 5}},
		{"duplicate, and no answer", ProxyFault{Duplicate: true, DropAnswer: true, After: 3}, "answer 1, answer 2, answer 3, lost", "a b c d d",
			ProxyCounts{Duplicated: 1, AnswersDropped: 1, Forwarded: 5}},
		{"delay", ProxyFault{Delay: time.Millisecond, DelayAnswer: time.Millisecond, After: 1}, "answer 1, answer 2, answer 3, answer 4", "a b c d",
			ProxyCounts{Delayed: 3, Forwarded: 4}},
		{"429", ProxyFault{Status: 429, Body: "slow down", After: 2, Times: 1}, "answer 1, answer 2, 429 slow down, answer 3", "a b d",
			ProxyCounts{Answered: 1, Forwarded: 3}},
		{"413 without a body", ProxyFault{Status: 413, Times: 1, Delay: 1}, "413 , answer 1, answer 2, answer 3", "b c d",
			ProxyCounts{Answered: 1, Delayed: 1, Forwarded: 3}},
		{"by method", ProxyFault{Method: "PUT", Drop: true}, "answer 1, answer 2, answer 3, answer 4", "a b c d", ProxyCounts{Forwarded: 4}},
		{"by path", ProxyFault{Path: "/x", Method: "POST", Drop: true}, "lost, lost, lost, lost", "", ProxyCounts{Dropped: 4}},
		{"by another path", ProxyFault{Path: "/", Drop: true}, "answer 1, answer 2, answer 3, answer 4", "a b c d", ProxyCounts{Forwarded: 4}},
		{"by operation", ProxyFault{Op: "PutItem", Drop: true}, "answer 1, lost, answer 2, lost", "a c", ProxyCounts{Dropped: 2, Forwarded: 2}},
		{"by operation, one of them", ProxyFault{Op: "PutItem", Drop: true, After: 1}, "answer 1, answer 2, answer 3, lost", "a b c", ProxyCounts{Dropped: 1, Forwarded: 3}},
		{"by the body", ProxyFault{Drop: true, Match: func(r *http.Request, body []byte) bool {
			return string(body) == "c" && r.URL.RawQuery == "q=1"
		}}, "answer 1, answer 2, lost, answer 3", "a b d", ProxyCounts{Dropped: 1, Forwarded: 3}},
		{"rewrite the answer", ProxyFault{Times: 1, Rewrite: func(request []byte, send func([]byte) (int, []byte)) []byte {
			status, answer := send(request)
			return fmt.Appendf(nil, "%s got %d %s!", request, status, answer)
		}}, "a got 200 answer 1!, answer 2, answer 3, answer 4", "a b c d", ProxyCounts{Rewritten: 1, Forwarded: 4}},
		{"rewrite the request", ProxyFault{Times: 1, Cut: true, Rewrite: func(request []byte, send func([]byte) (int, []byte)) []byte {
			send([]byte("other"))
			_, answer := send(append(request, "longer"...))
			return answer
		}}, "cut: answ, answer 3, answer 4, answer 5", "other alonger b c d", ProxyCounts{Rewritten: 1, Cut: 1, Forwarded: 5}},
		{"send nothing", ProxyFault{Times: 1, Rewrite: func([]byte, func([]byte) (int, []byte)) []byte { return []byte("{}") }},
			"{}, answer 1, answer 2, answer 3", "b c d", ProxyCounts{Rewritten: 1, Forwarded: 3}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := newOrigin(t, nil)
			p, c := o.through(t)
			p.Fail(tt.fault)
			var got []string
			for i, body := range []string{"a", "b", "c", "d"} {
				op := []string{"GetItem", "PutItem"}[i%2]
				got = append(got, post(t.Context(), c, p.URL()+"/x?q=1", op, body))
			}
			wantText(t, "outcomes", strings.Join(got, ", "), tt.want)
			wantText(t, "the server saw", o.saw(), tt.saw)
			tt.count.Requests = 4
			if got := p.Counts(); got != tt.count {
				t.Errorf("counts %+v, want %+v", got, tt.count)
			}
		})
	}
}

func TestProxyFaultsInOrder(t *testing.T) {
	o := newOrigin(t, nil)
	p, c := o.through(t)
	remove := p.Fail(ProxyFault{Status: 500, Body: "first", Times: 1})
	second := p.Fail(ProxyFault{Status: 503, Body: "second"})
	p.Fail(ProxyFault{Status: 501, Body: "third"})
	var got []string
	ask := func() { got = append(got, post(t.Context(), c, p.URL(), "", "")) }
	ask()
	ask()
	second()
	ask()
	remove()
	ask()
	wantText(t, "outcomes", strings.Join(got, ", "), "500 first, 503 second, 501 third, 501 third")
}

// Connections are kept alive through own answers and rewritten ones, on both
// sides. On a busy machine some are given up all the same: net/http does so when
// it has not learned within 50 ms that a request was sent.
func TestProxyKeepsConnectionsAlive(t *testing.T) {
	const each = 50
	o := newOrigin(t, nil)
	p, c := o.through(t)
	p.Fail(ProxyFault{Status: 500, Body: "no", Times: each})
	p.Fail(ProxyFault{Duplicate: true, Times: each})
	p.Fail(ProxyFault{Rewrite: func(r []byte, send func([]byte) (int, []byte)) []byte { send(r); return []byte("yes") }, Times: each})
	front := 0
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
		if !i.Reused {
			front++
		}
	}})
	for range 4 * each {
		post(ctx, c, p.URL(), "", "x")
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if front > each/2 || o.conns > each/2 || len(o.bodies) != 4*each {
		t.Errorf("%d connections of the client, %d to the server, which saw %d requests", front, o.conns, len(o.bodies))
	}
}

// Answers of unknown length are cut too; those that cannot be are lost.
func TestProxyCuts(t *testing.T) {
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/broken" { // by the server itself
			w.Header().Set("Content-Length", "10")
			io.WriteString(w, "half")
			http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
		if r.URL.Path == "/chunked" {
			io.WriteString(w, "0123")
			http.NewResponseController(w).Flush()
			io.WriteString(w, "4567")
		}
		if r.URL.Path == "/one" {
			io.WriteString(w, "1")
		}
	})
	p, c := o.through(t)
	p.Fail(ProxyFault{Cut: true})
	wantText(t, "chunked", post(t.Context(), c, p.URL()+"/chunked", "", ""), "cut: 0123")
	wantText(t, "one byte", post(t.Context(), c, p.URL()+"/one", "", ""), "lost")
	wantText(t, "no body", post(t.Context(), c, p.URL()+"/", "", ""), "lost")
	wantText(t, "broken by the server", post(t.Context(), c, p.URL()+"/broken", "", ""), "lost")
}

func TestProxyRewriteKeepsAnswersWhole(t *testing.T) {
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "" {
			w.Header().Set("Content-Encoding", "gzip")
		}
		w.Header().Set("X-Amz-Crc32", "1")
		w.WriteHeader(http.StatusTeapot)
		io.WriteString(w, "short")
		http.NewResponseController(w).Flush()
	})
	p, c := o.through(t)
	p.Fail(ProxyFault{Rewrite: func(r []byte, send func([]byte) (int, []byte)) []byte {
		_, answer := send(r)
		return append(answer, " and longer"...)
	}})
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, p.URL(), strings.NewReader("x"))
	req.Header.Set("Accept-Encoding", "gzip")
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	wantText(t, "answer", fmt.Sprint(resp.StatusCode, resp.Header["Content-Encoding"], resp.ContentLength, resp.Header.Get("X-Amz-Crc32"), string(body), err),
		fmt.Sprint(418, []string(nil), 16, "1405050345", "short and longer", nil))
}

// What a share takes depends on the seed and on requests of the same kind
// alone.
func TestProxyShare(t *testing.T) {
	draw := func(seed uint64, others bool) string {
		o := newOrigin(t, nil)
		p, c := o.through(t)
		p.Fail(ProxyFault{Status: 500, Share: 0.3, Seed: seed})
		var b strings.Builder
		for range 200 {
			if others {
				post(t.Context(), c, p.URL(), "GetItem", "")
			}
			if strings.HasPrefix(post(t.Context(), c, p.URL(), "PutItem", ""), "500") {
				b.WriteByte('x')
			} else {
				b.WriteByte('.')
			}
		}
		return b.String()
	}
	first := draw(1, false)
	if n := strings.Count(first, "x"); n < 40 || n > 80 {
		t.Errorf("%d of 200 were taken, want about 60", n)
	}
	if first != draw(1, true) {
		t.Error("requests of another kind changed what is taken")
	}
	if first == draw(2, false) {
		t.Error("another seed takes the same")
	}
}

// roundTripper is a server in memory.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
func (roundTripper) CloseIdleConnections()                               {}

// A client that gives up while its request is delayed has changed nothing;
// while the answer is delayed, what it wanted to.
func TestProxyDelays(t *testing.T) {
	for _, tt := range []struct {
		fault   ProxyFault
		patient bool
		want    string
	}{
		{ProxyFault{Delay: time.Hour}, true, "sent after 1h0m0s, over after 1h0m0s: <nil>"},
		{ProxyFault{Delay: time.Hour}, false, "over after 30m0s: context deadline exceeded"},
		{ProxyFault{DelayAnswer: time.Hour}, true, "sent after 0s, over after 1h0m0s: <nil>"},
		{ProxyFault{DelayAnswer: time.Hour}, false, "sent after 0s, over after 30m0s: context deadline exceeded"},
		{ProxyFault{Delay: time.Hour, DelayAnswer: time.Minute, DropAnswer: true}, true, "sent after 1h0m0s, over after 1h1m0s: " + errBroken.Error()},
		{ProxyFault{Delay: time.Hour, Drop: true}, true, "over after 1h0m0s: " + errBroken.Error()},
	} {
		t.Run(tt.want, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start, got := time.Now(), ""
				p := &Proxy{transport: roundTripper(func(r *http.Request) (*http.Response, error) {
					got = fmt.Sprintf("sent after %v, ", time.Since(start))
					return ownAnswer(r, http.StatusOK, nil, nil), nil
				})}
				p.Fail(tt.fault)
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
				defer cancel()
				if tt.patient {
					ctx = t.Context()
				}
				req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://x", strings.NewReader("x"))
				if err != nil {
					t.Fatal(err)
				}
				_, err = spoiler{p}.RoundTrip(req)
				wantText(t, "what happened", fmt.Sprintf("%sover after %v: %v", got, time.Since(start), err), tt.want)
				if p.Counts().Delayed != 1 {
					t.Errorf("counts: %+v", p.Counts())
				}
			})
		})
	}
}

func TestProxyWithoutAServer(t *testing.T) {
	o := newOrigin(t, nil)
	p, c := o.through(t)
	p.Fail(ProxyFault{Op: "Rewritten", Rewrite: func(r []byte, send func([]byte) (int, []byte)) []byte {
		_, answer := send(r)
		return answer
	}})
	o.Close()
	for _, op := range []string{"PutItem", "Rewritten"} {
		if got := post(t.Context(), c, p.URL(), op, "x"); !strings.HasPrefix(got, "502 streamtest: proxy: the server does not answer: ") {
			t.Errorf("%s: %s", op, got)
		}
	}
}

// Close ends what is still waiting and leaves no goroutine behind.
func TestProxyClose(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	waits := make(chan struct{})
	o := newOrigin(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body) // what comes after it is the end of the connection
		close(waits)
		<-r.Context().Done()
	})
	defer o.Close()
	p := NewProxy(nil, o.URL)
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	outcome := make(chan string)
	go func() { outcome <- post(t.Context(), &http.Client{Transport: tr}, p.URL(), "", "x") }()
	<-waits
	p.Close()
	wantText(t, "outcome", <-outcome, "lost")
	wantText(t, "afterwards", post(t.Context(), &http.Client{Transport: tr}, p.URL(), "", "x"), "failed")
	p.Close()
}

func TestProxyRefuses(t *testing.T) {
	p := NewProxy(nil, "http://127.0.0.1:1")
	defer p.Close()
	rewrite := func(r []byte, _ func([]byte) (int, []byte)) []byte { return r }
	for _, tt := range []struct {
		call func()
		want string
	}{
		{func() { NewProxy(nil, "127.0.0.1:8000") }, `want the URL of a server`},
		{func() { NewProxy(nil, "ftp://x") }, `want the URL of a server`},
		{func() { p.Fail(ProxyFault{}) }, "does nothing"},
		{func() { p.Fail(ProxyFault{Op: "PutItem", Share: 0.5}) }, "does nothing"},
		{func() { p.Fail(ProxyFault{Drop: true, Times: -1}) }, "negative"},
		{func() { p.Fail(ProxyFault{Drop: true, Share: 1.5}) }, "Share of 1.5; want 0 to 1"},
		{func() { p.Fail(ProxyFault{Drop: true, Status: 500}) }, "stand alone"},
		{func() { p.Fail(ProxyFault{Drop: true, Cut: true}) }, "stand alone"},
		{func() { p.Fail(ProxyFault{Status: 500, Rewrite: rewrite}) }, "stand alone"},
		{func() { p.Fail(ProxyFault{Status: 100}) }, "Status of 100"},
		{func() { p.Fail(ProxyFault{Body: "x", Cut: true}) }, "Body without a Status"},
		{func() { p.Fail(ProxyFault{DropAnswer: true, Cut: true}) }, "cannot be cut"},
		{func() { p.Fail(ProxyFault{Duplicate: true, Rewrite: rewrite}) }, "nothing to duplicate"},
	} {
		t.Run(tt.want, func(t *testing.T) {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, tt.want) || !strings.HasPrefix(got, "streamtest: proxy: ") {
					t.Errorf("panic %q, want %q in it", got, tt.want)
				}
			}()
			tt.call()
		})
	}
}
