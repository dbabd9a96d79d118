package poller

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/state"
)

// garbled is a stub whose GetRecords answers are changed on their way.
type garbled struct {
	*stub
	change func(body string) string
}

func (g garbled) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := g.stub.RoundTrip(req)
	if err != nil || res.StatusCode != http.StatusOK || !strings.HasSuffix(req.Header.Get("X-Amz-Target"), ".GetRecords") {
		return res, err
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	body = []byte(g.change(string(body)))
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return res, nil
}

type configured struct{ cfg aws.Config }

func (c configured) config() aws.Config { return c.cfg }

func garble(t *testing.T, s *stub, o Options, got *sink, change func(string) string) *rig {
	t.Helper()
	cfg := s.config()
	cfg.HTTPClient = &http.Client{Transport: garbled{s, change}}
	return start(t, configured{cfg}, got.handle, o)
}

// quoteIn puts a quote into the text of items that have one of the keys, so that
// nobody can say where their records end.
func quoteIn(keys ...string) func(string) string {
	return func(body string) string {
		for _, k := range keys {
			body = strings.Replace(body, `{"S":"`+k+`"}`, `{"S":"`+k+`""}`, 1)
		}
		return body
	}
}

// lettersOf returns the places of the records that the dead letters hold, and the
// letters.
func lettersOf(t *testing.T, store *state.Memory) (sequences string, all []deadletter.Entry) {
	t.Helper()
	all, _, err := deadletter.NewBox(store, "sluice").List(t.Context(), "", 100)
	if err != nil {
		t.Error(err)
	}
	for _, e := range all {
		sequences += " " + e.ShardID + "/" + strings.TrimPrefix(string(e.Sequence), stubBase)
	}
	return strings.TrimSpace(sequences), all
}

// A record for which its whole page cannot be split is parked as it came, with
// its position. All others of the page are handled, in their order, and a
// restart goes on behind it.
func TestARecordThatSpoilsItsPage(t *testing.T) {
	for _, limit := range []int32{0, 1, 7} {
		t.Run(fmt.Sprint("limit ", limit), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s, store := newStub(), state.NewMemory()
				sh := &stubShard{id: "a"}
				s.table("orders", sh)
				var all []string
				for i := range 40 {
					s.put(sh, fmt.Sprint("k", i))
					if i != 11 && i != 12 && i != 39 {
						all = append(all, fmt.Sprint("a/", i+1))
					}
				}
				o := withBox(store, "orders")
				o.Limit, o.Flow.Concurrency = limit, 1
				var got sink
				r := garble(t, s, o, &got, quoteIn("k11", "k12", "k39"))
				pass(10 * time.Minute)
				r.unready("")
				want(t, "handled", got.all(), strings.Join(all, " "))
				places, letters := lettersOf(t, store)
				want(t, "parked", places, "a/12 a/13 a/40")
				for _, e := range letters {
					if !bytes.Contains(e.Raw, []byte(`""}`)) || !bytes.HasPrefix(e.Raw, []byte(`{"awsRegion"`)) || e.Record().Err() == nil || e.Table != "orders" {
						t.Errorf("the letter of %s has the record %s", e.Sequence, e.Raw)
					}
				}
				r.mustEnd()
				want(t, "position", stored(t, store, "orders"), "a@40")
				s.put(sh, "k40")
				r = garble(t, s, o, &got, quoteIn("k11", "k12", "k39"))
				pass(time.Minute)
				want(t, "handled", got.all(), strings.Join(append(all, "a/41"), " "))
				r.mustEnd()
			})
		})
	}
}

// The end of a shard is not passed over, whether its last record can be read or
// not.
func TestARecordThatSpoilsTheLastPage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, store := newStub(), state.NewMemory()
		sh, child := &stubShard{id: "a"}, &stubShard{id: "b", parent: "a"}
		s.table("orders", sh, child)
		s.put(sh, "x", "y")
		s.put(child, "x")
		s.with(func() { sh.closed = true })
		var got sink
		r := garble(t, s, withBox(store, "orders"), &got, quoteIn("y"))
		pass(10 * time.Minute)
		want(t, "handled", got.all(), "a/1 b/1")
		places, _ := lettersOf(t, store)
		want(t, "parked", places, "a/2")
		r.mustEnd()
		want(t, "positions", stored(t, store, "orders"), "a@2! b@1")
	})
}

// What holds no record is no answer, however long it comes: nothing is parked
// and nothing passed over. The poller is not ready meanwhile, and says why.
func TestAnAnswerThatHoldsNoRecord(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	for name, body := range map[string]string{
		"a proxy's page":  "<html>[no service]</html>",
		"nothing":         "{}",
		"an empty answer": `{"Records":[],"NextShardIterator":`,
		"no position":     `{"Records":[{"eventID":"1"],"NextShardIterator":"n"}`,
		"two positions":   `{"Records":[{"SequenceNumber":"100000000000000000005","SequenceNumber":"100000000000000000006"],"NextShardIterator":"n"}`,
		"an old position": `{"Records":[{"SequenceNumber":"099999999999999999997"],"NextShardIterator":"n"}`,
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s, store := newStub(), state.NewMemory()
				sh := &stubShard{id: "a"}
				s.table("orders", sh)
				s.put(sh, "x")
				var bad atomic.Bool
				var got sink
				r := garble(t, s, withBox(store, "orders"), &got, func(b string) string {
					if bad.Load() {
						return body
					}
					return b
				})
				pass(time.Minute)
				s.put(sh, "y")
				bad.Store(true)
				pass(time.Hour)
				r.unready("not a batch of stream records")
				places, _ := lettersOf(t, store)
				want(t, "parked", places, "")
				bad.Store(false)
				pass(time.Minute)
				r.unready("")
				want(t, "handled", got.all(), "a/1 a/2")
				r.mustEnd()
			})
		})
	}
}
