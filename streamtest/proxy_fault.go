package streamtest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"
)

// ProxyFault is what goes wrong with some requests. Of several faults that
// match a request the first one registered takes it; the others do not count
// it.
//
// What it does is one of Drop, Status, and any of the others together; Delay
// goes with all.
type ProxyFault struct {
	// Method, Path and Op say which requests: Path as the server is
	// sent it, without the query, Op the operation in X-Amz-Target, such as
	// "BatchWriteItem". Empty is any. Match, if there is one, has a say too; it
	// must be safe for concurrent use.
	Method, Path, Op string
	Match            func(r *http.Request, body []byte) bool

	// After is how many of these requests pass first, and Times how many are
	// taken then; 0 is all until the fault is removed.
	After, Times int
	// Share of the requests, from 0 to 1, is drawn from Seed; 0 is all of them.
	// What is drawn depends on the seed, on the request's method, path and
	// operation, and on how many such requests came before it; not on what
	// other goroutines do meanwhile.
	Share float64
	Seed  uint64

	// Delay is how long the request takes to get to the server. A client that
	// gives up meanwhile has changed nothing there.
	Delay time.Duration
	// Drop breaks the connection; the server sees nothing of the request.
	Drop bool
	// Status answers in place of the server, which sees nothing of the request,
	// with this status and with Header and Body.
	Status int
	Header http.Header
	Body   string

	// Duplicate sends the request a second time once it was answered. The client
	// gets the first answer.
	Duplicate bool
	// Rewrite makes the answer's body. send sends the server a request body, as
	// often as it is called, and returns its answer; status and header of the
	// last answer are those that the client gets. Without any, they are 200 and
	// a JSON content type. It must be safe for concurrent use.
	Rewrite func(request []byte, send func(request []byte) (status int, answer []byte)) (answer []byte)
	// DelayAnswer is how long the answer takes on its way back. A client that
	// gives up meanwhile has changed what it wanted to.
	DelayAnswer time.Duration
	// DropAnswer breaks the connection once the server has answered.
	DropAnswer bool
	// Cut breaks the connection in the middle of the answer's body. Of a body of
	// less than two bytes nothing arrives.
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

// proxyRule is a fault and what it has seen. Its counts are under the proxy's
// mu.
type proxyRule struct {
	ProxyFault
	seen  int
	taken int
	kinds map[string]uint64 // requests drawn for
}

// matches reports whether the fault is about such requests.
func (f *ProxyFault) matches(r *http.Request, body []byte) bool {
	_, op := target(r.Header.Get("X-Amz-Target"))
	return (f.Method == "" || f.Method == r.Method) && (f.Path == "" || f.Path == r.URL.Path) && (f.Op == "" || f.Op == op) &&
		(f.Match == nil || f.Match(r, body))
}

// takes reports whether it is this request's turn, and counts it.
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
