package poller

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/sources/poller/internal/lineage"
	"github.com/sluicehq/sluice/state"
)

// A restart while the control plane throttles goes on where the positions are:
// no shard waits for a listing that was begun before.
func TestRestartWhileThrottled(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	for _, op := range []string{"DescribeTable", "DescribeStream", "both"} {
		for _, by := range []string{"table", "ARN"} {
			for _, e := range []string{"ThrottlingException", "LimitExceededException", "ServiceUnavailable:503"} {
				t.Run(op+" by "+by+" "+e, func(t *testing.T) {
					bubble(t, func(t *testing.T) {
						s, store := newStub(), state.NewMemory()
						a, b := &stubShard{id: "a", closed: true}, &stubShard{id: "b", parent: "a"}
						d := &stubShard{id: "d"} // without a position: only a listing says that nothing of it is lost
						st := s.table("orders", a, b, d)
						s.put(a, "k")
						s.put(b, "k")
						var got sink
						o := testOptions(store, "orders")
						o.BusyInterval, o.IdleInterval = 5*time.Second, 5*time.Second // polls are not what this is about
						if by == "ARN" {
							o.Streams = []Stream{{ARN: stubARN("orders")}}
						}
						r := start(t, s, got.handle, o)
						pass(10 * time.Second)
						r.mustEnd()
						s.put(b, "k")
						c := &stubShard{id: "c"}
						s.put(c, "k")
						s.with(func() {
							st.shards = append(st.shards, c)
							s.fail = func(call, _ string) string {
								if call == op || op == "both" && strings.HasPrefix(call, "Describe") {
									return e
								}
								return ""
							}
						})
						r = start(t, s, got.handle, o)
						pass(time.Minute)
						want(t, "handled", got.of("ab"), "a/1 b/1 b/2")
						switch {
						case op == "DescribeTable" && by == "ARN":
							r.unready("")
						case op == "DescribeTable":
							r.unready("table orders: whether its stream was replaced cannot be told: dynamodb:DescribeTable")
						default:
							r.unready("table orders: shards cannot be listed")
						}
						s.with(func() { s.fail = nil })
						pass(time.Minute)
						want(t, "handled of what began meanwhile", got.of("c"), "c/1")
						s.put(d, "k")
						pass(time.Minute)
						want(t, "handled of what had no position", got.of("d"), "d/1")
						r.unready("")
						r.mustEnd()
					})
				})
			}
		}
	}
}

// A shard without a position, old enough that its first records may be lost, waits
// for a listing to say which those were: without it that is no gap.
func TestOldShardWaitsForAListing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, store := newStub(), state.NewMemory()
		sh := &stubShard{id: fmt.Sprintf("shardId-%020d-1", time.Now().UnixMilli())}
		s.table("orders", sh)
		var got sink
		o := testOptions(store, "orders")
		o.BusyInterval, o.IdleInterval, o.CheckpointEvery, o.HeartbeatEvery, o.DiscoverEvery = time.Hour, time.Hour, time.Hour, time.Hour, time.Hour // a day passes
		r := start(t, s, got.handle, o)
		pass(25 * time.Hour)
		r.mustEnd()
		s.with(func() {
			s.fail = func(op, _ string) string {
				if op == "DescribeStream" {
					return "ThrottlingException"
				}
				return ""
			}
		})
		s.put(sh, "k")
		r = start(t, s, got.handle, testOptions(store, "orders"))
		pass(time.Minute)
		want(t, "handled before a listing", got.all(), "")
		s.with(func() { s.fail = nil })
		pass(time.Minute)
		want(t, "handled", got.all(), sh.id+"/1")
		r.unready("")
		r.mustEnd()
	})
}

// What was listed before the listing failed does not say that a shard is missing:
// two whole listings do, and then the service is asked for it.
func TestAListingThatFailedMissesNothing(t *testing.T) {
	s := &stream{p: &Poller{o: Options{Logger: slog.New(slog.DiscardHandler)}}, forest: lineage.New(), unlisted: true}
	shards := []lineage.Listed{{ID: "child", Parent: "parent"}}
	s.fill(listing{shards: shards}, nil, nil)
	s.forest.Merge(shards, whole)
	if got := s.forest.UnlistedParents(); len(got) > 0 {
		t.Errorf("after one listing the service is asked for %v", got)
	}
	s.forest.Merge(shards, whole)
	if got := s.forest.UnlistedParents(); !slices.Equal(got, []string{"parent"}) {
		t.Errorf("after two listings the service is asked for %v", got)
	}
}

// A stream that was begun without a listing is given up when the listing says
// that its records lack what a route needs.
func TestViewIsCheckedAfterAThrottledStart(t *testing.T) {
	for _, by := range []string{"table", "ARN"} {
		t.Run(by, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s, store := newStub(), state.NewMemory()
				st := s.table("orders", &stubShard{id: "a"})
				var got sink
				o := testOptions(store, "orders")
				if by == "ARN" {
					o.Streams = []Stream{{ARN: st.arn}}
				}
				m := matcher(got.handle)
				m.route.Needs = item.NewImage
				r := startMatching(t, s, m, o)
				pass(10 * time.Second)
				r.mustEnd()
				s.with(func() {
					st.view = "KEYS_ONLY"
					s.fail = func(op, _ string) string {
						if op == "DescribeStream" {
							return "ThrottlingException"
						}
						return ""
					}
				})
				r = startMatching(t, s, m, o)
				pass(time.Minute)
				r.unready("table orders: shards cannot be listed")
				s.with(func() { s.fail = nil })
				pass(time.Minute)
				r.unready(`its view type is KEYS_ONLY, but route "test" needs`)
				polls := s.count("GetRecords", "")
				pass(time.Minute)
				if n := s.count("GetRecords", "") - polls; n > 0 {
					t.Errorf("%d polls of a stream that cannot be read", n)
				}
				_ = r.end() // by ARN with the error
			})
		})
	}
}

// A stream that was never read is not begun while nobody can tell which it is.
func TestFirstStartWhileThrottled(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStub()
		s.table("orders", &stubShard{id: "a"})
		s.fail = func(string, string) string { return "ThrottlingException" }
		r := start(t, s, new(sink).handle, testOptions(state.NewMemory(), "orders"))
		pass(10 * time.Second)
		if err := <-r.done; err == nil || !strings.Contains(err.Error(), "ThrottlingException") {
			t.Errorf("Run returned %v", err)
		}
		r.over = true
	})
}
