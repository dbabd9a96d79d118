package poller_test

import (
	"cmp"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/sources/poller"
	"github.com/sluicehq/sluice/state"
	"github.com/sluicehq/sluice/streamtest"
)

// What the service may answer, and what a reader must do: a test for each row
// of the table in docs/poller.md.

func TestErrorExpiredIterator(t *testing.T) {
	inWorld(t, streamtest.TableOptions{}, func(w *world) {
		d := w.start()
		w.put("a", "b")
		w.pass(time.Second)
		w.svc.Fail(streamtest.Fault{Op: "GetRecords", Error: "ExpiredIteratorException", Times: 3})
		w.put("a")
		w.pass(time.Minute)
		w.wantHandled("after expiries", "a1 b1 a2")
		d.unready("")
		d.end()
		asked := w.calls("GetShardIterator", "")
		if last := asked[len(asked)-1]; last.Iterator != "AFTER_SEQUENCE_NUMBER" || last.Sequence != w.table.Changes()[1].Sequence {
			t.Errorf("the last iterator was asked for %s %s", last.Iterator, last.Sequence)
		}
	})
}

func TestErrorTrimmedDataAccess(t *testing.T) {
	for _, policy := range []poller.GapPolicy{poller.GoOn, poller.Halt} {
		inWorld(t, streamtest.TableOptions{}, func(w *world) {
			box := deadletter.NewBox(w.store.(state.Letters), "sluice")
			w.o.Flow.DeadLetter, w.o.Gaps = box, policy
			d := w.start()
			w.put("a")
			w.pass(time.Second)
			d.end()
			w.put("b", "c", "d")
			w.pass(23*time.Hour + 30*time.Minute)
			w.table.Trim(w.shard(0), 3)
			d = w.start()
			w.pass(time.Minute)
			kept, err := box.Gaps(t.Context())
			if err != nil || len(kept) != 1 || kept[0].After != w.table.Changes()[0].Sequence {
				t.Fatalf("dead letters: %+v, %v", kept, err)
			}
			d.unready("acknowledge the gap")
			end := w.table.Changes()[3].Sequence
			if policy == poller.Halt {
				d.unready("halted at a gap")
				w.wantHandled("before the gap", "a1")
				end = ""
			} else {
				w.wantHandled("around the gap", "a1 d1")
			}
			if kept[0].Before != end {
				t.Errorf("the gap ends before %q, want %q", kept[0].Before, end)
			}
			if len(w.gaps) != 1 {
				t.Errorf("the hook was called for %v", w.gaps)
			}
			d.end()
		})
	}
}

// DynamoDB Local says of an iterator that its records are trimmed when the shard
// was empty and another table is written to. A shard younger than the retention
// has lost nothing. An older one may have: also behind a position whose iterator
// has read empty pages so far.
func TestErrorTrimmedDataAccessOfAYoungShard(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	for _, c := range []struct {
		name string
		age  time.Duration // of the shard
		read string        // before the error
		gaps int
	}{
		{"young, nothing read", time.Hour, "", 0},
		{"young, behind a position", 22 * time.Hour, "a", 0},
		{"old, behind a position", 23*time.Hour + 30*time.Minute, "a", 1},
		{"old, nothing read", 23*time.Hour + 30*time.Minute, "", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, streamtest.TableOptions{}, func(w *world) {
				w.o.BusyInterval, w.o.IdleInterval, w.o.StaleAfter = time.Minute, time.Minute, 5*time.Minute
				w.o.CheckpointEvery, w.o.HeartbeatEvery, w.o.DiscoverEvery = time.Minute, time.Minute, 10*time.Minute
				d := w.start()
				want := ""
				if c.read != "" {
					w.put(c.read)
					want = "a1 "
				}
				w.pass(c.age)
				w.svc.Fail(streamtest.Fault{Op: "GetRecords", Error: "TrimmedDataAccessException", Times: 3})
				w.pass(2 * time.Minute)
				w.put("b", "c")
				w.pass(5 * time.Minute)
				w.wantHandled("after the error", want+"b1 c1")
				if len(w.gaps) != c.gaps {
					t.Errorf("gaps %v, want %d", w.gaps, c.gaps)
				}
				if c.gaps == 0 {
					d.unready("")
				} else {
					d.unready("acknowledge the gap")
				}
				d.end()
			})
		})
	}
}

func TestErrorResourceNotFound(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	slowly := func(w *world) {
		w.o.BusyInterval, w.o.IdleInterval, w.o.StaleAfter = time.Minute, time.Minute, 5*time.Minute
		w.o.CheckpointEvery, w.o.HeartbeatEvery, w.o.DiscoverEvery = time.Minute, time.Minute, 10*time.Minute
	}
	t.Run("the shard was trimmed", func(t *testing.T) {
		inWorld(t, streamtest.TableOptions{}, func(w *world) {
			d := w.start()
			w.put("a")
			w.pass(time.Second)
			d.end()
			w.put("a")
			old := w.shard(0)
			w.table.Roll(old)
			w.put("a")
			w.table.Trim(old, -1)
			d = w.start()
			w.pass(time.Minute)
			w.wantHandled("in the end", "a1 a3")
			d.unready("shard " + old + ": all records after")
			d.end()
			if !w.stored(old).Position.Finished {
				t.Error("the shard is not finished")
			}
		})
	})
	t.Run("the stream was disabled", func(t *testing.T) {
		inWorld(t, streamtest.TableOptions{}, func(w *world) {
			slowly(w)
			d := w.start()
			w.put("a")
			w.pass(10 * time.Minute)
			w.table.DisableStream()
			w.pass(11 * time.Minute)
			d.unready("is DISABLED: nothing new will arrive")
			w.pass(25 * time.Hour)
			d.unready("table orders")
			w.table.EnableStream("NEW_AND_OLD_IMAGES")
			w.put("b")
			w.pass(time.Hour)
			w.wantHandled("of both streams", "a1 b1")
			d.end()
		})
	})
	t.Run("the table was deleted", func(t *testing.T) {
		inWorld(t, streamtest.TableOptions{}, func(w *world) {
			slowly(w)
			d := w.start()
			w.put("a")
			w.pass(10 * time.Minute)
			w.svc.DeleteTable("orders")
			w.pass(25 * time.Hour)
			d.unready("table orders")
			w.table = w.svc.CreateTable("orders", streamtest.TableOptions{})
			w.put("b")
			w.pass(time.Hour)
			w.wantHandled("of both tables", "a1 b1")
			d.end()
		})
	})
}

// Nothing that passes ends a shard: neither at the first time nor after
// minutes. It is asked again, and not too often.
func TestErrorsThatPass(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	kinds := map[string]streamtest.Fault{
		"LimitExceededException":                 {},
		"ProvisionedThroughputExceededException": {},
		"ThrottlingException":                    {},
		"InternalServerError":                    {},
		"ServiceUnavailable":                     {},
		"SomethingNew":                           {Status: http.StatusBadRequest},
		"a proxy's error":                        {Status: http.StatusBadGateway},
		"a proxy's limit":                        {Status: http.StatusTooManyRequests},
		"no answer":                              {Hang: true},
		"a broken connection":                    {Cut: true},
	}
	for name, f := range kinds {
		for _, op := range []string{"DescribeStream", "GetShardIterator", "GetRecords"} {
			t.Run(name+"/"+op, func(t *testing.T) {
				inWorld(t, streamtest.TableOptions{}, func(w *world) {
					w.o.CallTimeout = time.Second
					d := w.start()
					w.put("a")
					w.pass(time.Second)
					f.Op = op
					if f.Status == 0 || name == "SomethingNew" {
						f.Error = name
					}
					if f.Hang || f.Cut {
						f.Error = ""
					}
					mended := w.svc.Fail(f)
					w.put("a")
					w.table.Roll(w.shard(0))
					w.put("a")
					before := len(w.calls(op, ""))
					w.pass(5 * time.Second)
					d.unready("")
					w.pass(2 * time.Minute)
					if n := len(w.calls(op, "")) - before; n < 5 || n > 60 {
						t.Errorf("%d calls in two minutes", n)
					}
					d.unready("table orders")
					mended()
					w.pass(time.Minute)
					d.unready("")
					w.once(0)
					d.end()
					if len(w.gaps) > 0 || strings.Contains(w.log(), "gone") || strings.Contains(w.log(), "failed") {
						t.Errorf("events: %s; gaps: %v", w.log(), w.gaps)
					}
				})
			})
		}
	}
}

// What only people can mend is told at the start, with the action and on what;
// later it makes the poller unready, and is tried slowly.
func TestErrorsOfConfiguration(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	for _, name := range []string{"AccessDeniedException", "UnrecognizedClientException", "InvalidSignatureException", "ExpiredTokenException", ""} {
		for _, op := range []string{"DescribeTable", "DescribeStream", "GetShardIterator", "GetRecords"} {
			t.Run(cmp.Or(name, "a proxy's refusal")+"/"+op, func(t *testing.T) {
				inWorld(t, streamtest.TableOptions{}, func(w *world) {
					f := streamtest.Fault{Op: op, Error: name}
					if name == "" {
						f.Status = http.StatusForbidden
					}
					mended := w.svc.Fail(f)
					d := w.start()
					var err error
					select {
					case err = <-d.done:
					case <-time.After(time.Minute):
						d.end()
					}
					on := w.table.StreamARN()
					if op == "DescribeTable" {
						on = `table "orders"`
					}
					for _, part := range []string{"dynamodb:" + op, on, cmp.Or(name, "403"), "Allow"} {
						if err == nil || !strings.Contains(err.Error(), part) {
							t.Errorf("the error lacks %q: %v", part, err)
						}
					}
					mended()
					if op == "DescribeTable" {
						return
					}

					d = w.start()
					w.put("a")
					w.pass(time.Second)
					mended = w.svc.Fail(f)
					w.table.Roll(w.shard(0))
					w.put("b")
					w.pass(70 * time.Second) // the next listing
					d.unready(op)
					d.unready(cmp.Or(name, "403"))
					d.unready(w.table.StreamARN())
					before := len(w.calls(op, ""))
					w.pass(10 * time.Minute)
					if n := len(w.calls(op, "")) - before; n < 10 || n > 60 {
						t.Errorf("%d tries in 10 minutes, want slow ones", n)
					}
					mended()
					w.pass(2 * time.Minute)
					d.unready("")
					w.wantHandled("in the end", "a1 b1")
					d.end()
				})
			})
		}
	}
}
