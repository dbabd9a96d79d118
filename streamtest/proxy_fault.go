package streamtest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"
)

// ProxyFault is a failure of some requests. Of several matching faults the first
// registered applies; the others do not count the request.
//
// Use Drop, or Status, or any of the others together. Delay combines with all.
type ProxyFault struct {
	// Method, Path and Op select requests. Path is the server's, without the
	// query. Op is the operation in X-Amz-Target, such as "BatchWriteItem".
	// Empty is any. Match, if set, must accept too; it must be safe for
	// concurrent use.
	Method, Path, Op string
	Match            func(r *http.Request, body []byte) bool

	// After is the number of these requests that pass first. Times is the
	// number that fail then; 0 is all until the fault is removed.
	After, Times int
	// Share of the requests, from 0 to 1, is drawn from Seed; 0 is all of them.
	// The result depends on the seed, on the request's method, path and
	// operation, and on the number of such requests before it. Other goroutines
	// do not affect it.
	Share float64
	Seed  uint64

	// Delay is the time before the request reaches the server. A client that
	// gives up meanwhile has changed nothing there.
	Delay time.Duration
	// Drop breaks the connection before the server sees the request.
	Drop bool
	// Status responds instead of the server, which does not see the request,
	// with this status and with Header and Body.
	Status int
	Header http.Header
	Body   string

	// Duplicate sends the request a second time after the response. The client
	// gets the first response.
	Duplicate bool
	// Rewrite makes the response's body. send sends a request body to the
	// server and returns its response; it may be called repeatedly. The client
	// gets status and header of the last response, or 200 and a JSON content
	// type without any. Rewrite must be safe for concurrent use.
	Rewrite func(request []byte, send func(request []byte) (status int, answer []byte)) (answer []byte)
	// DelayAnswer is the time before the response reaches the client. A client
	// that gives up meanwhile has changed the data.
	DelayAnswer time.Duration
	// DropAnswer breaks the connection after the server's response.
	DropAnswer bool
	// Cut breaks the connection in the middle of the response's body. A body of
	// less than two bytes is lost completely.
	Cut bool
}

func (f *ProxyFault) validate() error {
	after := f.Duplicate || f.Rewrite != nil || f.DelayAnswer > 0 || f.DropAnswer || f.Cut
	switch {
	case f.After < 0 || f.Times < 0 || f.Delay < 0 || f.DelayAnswer < 0:
		return errors.New("a negative After, Times, Delay or DelayAnswer")
	case !(f.Share >= 0 && f.Share <= 1):
		return fmt.Errorf("a Share of %v; want 0 to 1", f.Share)
	case f.Status != 0 && (f.Status < 200 || f.Status > 999):
		return fmt.Errorf("a Status of %d; want one that ends a request", f.Status)
	case f.Status == 0 && (f.Header != nil || f.Body != ""):
		return errors.New("a Header or Body without a Status")
	case f.Drop && f.Status != 0, (f.Drop || f.Status != 0) && after:
		return errors.New("a request that the server does not see cannot be answered by it: Drop and Status stand alone")
	case f.DropAnswer && f.Cut:
		return errors.New("an answer that is dropped cannot be cut")
	case f.Duplicate && f.Rewrite != nil:
		return errors.New("a Rewrite sends what it likes: there is nothing to duplicate")
	case !f.Drop && f.Status == 0 && f.Delay == 0 && !after:
		return errors.New("a fault that does nothing")
	}
	return nil
}

// proxyRule is a fault and its counts, guarded by the proxy's mu.
type proxyRule struct {
	ProxyFault
	seen  int
	taken int
	kinds map[string]uint64 // number of draws by kind of request
}

// matches reports whether the fault selects the request.
func (f *ProxyFault) matches(r *http.Request, body []byte) bool {
	_, op := target(r.Header.Get("X-Amz-Target"))
	return (f.Method == "" || f.Method == r.Method) && (f.Path == "" || f.Path == r.URL.Path) && (f.Op == "" || f.Op == op) &&
		(f.Match == nil || f.Match(r, body))
}

// takes counts the request and reports whether the fault applies to it.
func (f *proxyRule) takes(kind string) bool {
	if f.Times > 0 && f.taken >= f.Times {
		return false
	}
	if f.seen++; f.seen <= f.After {
		return false
	}
	if f.Share > 0 {
		nth := f.kinds[kind]
		f.kinds[kind]++
		if rand.New(rand.NewPCG(f.Seed, hash([]byte(kind))+nth)).Float64() >= f.Share {
			return false
		}
	}
	f.taken++
	return true
}
