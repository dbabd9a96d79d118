//go:build integration || long

package opensearch

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"testing/synctest"
	"weak"

	"go.uber.org/goleak"

	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/localtest"
)

func heap() (objects, goroutines int) {
	runtime.GC()
	runtime.GC() // pools forget
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.Mallocs - m.Frees), runtime.NumGoroutine()
}

// A warm Lambda writes through one Sink. Each invocation has its results before
// it returns, and after 1,000 nothing has grown.
func TestMemoryIsFlatOverAThousandInvocations(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent()) // other tests leave idle connections to their servers
	c := &cluster{t: t}
	served := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served++
		c.requests, c.bodies, c.paths, c.docs = nil, nil, nil, nil
		res, err := c.RoundTrip(r)
		if err != nil {
			t.Error(err)
			return
		}
		defer res.Body.Close()
		_, _ = io.Copy(w, res.Body)
	}))
	defer server.Close()
	base, err := Connection{}.roundTripper()
	if err != nil {
		t.Fatal(err)
	}
	defer base.CloseIdleConnections()
	client, err := connect(Connection{URLs: []string{server.URL}}.withDefaults(), base)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(client, Options{})
	if err != nil {
		t.Fatal(err)
	}
	invoke := func() {
		ops := make([]document.Op, 20)
		for i := range ops {
			ops[i] = putAt("i", fmt.Sprint(i), 1, `{"n":1}`)
		}
		if errs := s.WriteAll(t.Context(), ops); errs != nil {
			t.Fatal(errs)
		}
	}
	for range 100 {
		invoke()
	}
	objects, goroutines := heap()
	for range 1000 {
		invoke()
	}
	after, goroutinesAfter := heap()
	if after > objects+500 || goroutinesAfter > goroutines+2 {
		t.Errorf("%d objects and %d goroutines became %d and %d", objects, goroutines, after, goroutinesAfter)
	}
	if served != 1100 {
		t.Errorf("%d requests", served)
	}
}

// After a burst the Sink keeps no written bodies and no lanes.
func TestABurstIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{}
		s := c.sink(t, Options{})
		bodies := make([]weak.Pointer[[1 << 10]byte], 0, 20_000)
		func() {
			ops := make([]document.Op, 0, cap(bodies))
			for i := range cap(bodies) {
				b := new([1 << 10]byte)
				for k := range b {
					b[k] = ' '
				}
				copy(b[:], `{"n":1}`)
				bodies = append(bodies, weak.Make(b))
				ops = append(ops, put("i", fmt.Sprint(i), ""))
				ops[i].Body = b[:]
			}
			if errs := s.WriteAll(t.Context(), ops); errs != nil {
				t.Error(errs)
			}
		}()
		c.requests, c.bodies, c.docs = nil, nil, nil
		heap()
		kept := 0
		for _, b := range bodies {
			if b.Value() != nil {
				kept++
			}
		}
		if kept > 0 {
			t.Errorf("%d of %d bodies are kept", kept, len(bodies))
		}
		if s.order.lanes != nil {
			t.Error("the map of the lanes is kept at its size")
		}
		expectFree(t, s)
		runtime.KeepAlive(s)
	})
}

// A buffer serves another request only when net/http has let go of it.
func TestBufferIsHeldUntilItIsClosed(t *testing.T) {
	b := newBuffer()
	b.b = append(b.b, "abc"...)
	r := b.reader()
	b.release()
	if n := b.refs.Load(); n != 1 {
		t.Errorf("%d hold it", n)
	}
	p := make([]byte, 8)
	if n, err := r.Read(p); n != 3 || err != nil {
		t.Error(n, err)
	}
	r.Close()
	r.Close()
	if n := b.refs.Load(); n != 0 {
		t.Errorf("%d hold it", n)
	}
	if _, err := r.Read(p); err == nil {
		t.Error("a closed body is read")
	}
}
