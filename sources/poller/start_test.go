package poller

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/sources/poller/internal/lineage"
	"github.com/sluicehq/sluice/state"
)

func TestOptions(t *testing.T) {
	ok := Options{Streams: []Stream{{Table: "t"}}, Store: state.NewMemory()}
	for _, c := range []struct {
		name   string
		change func(*Options)
		says   string
	}{
		{"no streams", func(o *Options) { o.Streams = nil }, "Options.Streams is empty"},
		{"both", func(o *Options) { o.Streams[0].ARN = stubARN("t") }, "set either Table or ARN"},
		{"neither", func(o *Options) { o.Streams = []Stream{{}} }, "set either Table or ARN"},
		{"not an ARN", func(o *Options) { o.Streams = []Stream{{ARN: "arn:aws:sqs:us-east-1:1:q"}} }, "is not a stream ARN"},
		{"twice", func(o *Options) { o.Streams = append(o.Streams, o.Streams[0]) }, "named twice"},
		{"no store", func(o *Options) { o.Store = nil }, "Options.Store is nil"},
		{"start", func(o *Options) { o.Start, o.StartName = "NOW", "--start" }, `--start is "NOW": want TRIM_HORIZON or LATEST`},
		{"policy", func(o *Options) { o.Flow.Policy = 1 }, "Options.Flow.Policy is Stop"},
		{"limit", func(o *Options) { o.Limit = 1001 }, "Options.Limit is 1001"},
		{"duration", func(o *Options) { o.Grace = -1 }, "Options.Grace is -1ns"},
		{"intervals", func(o *Options) { o.BusyInterval, o.IdleInterval = 2, 1 }, "IdleInterval is 1ns: want at least BusyInterval"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := ok
			o.Streams = []Stream{{Table: "t"}}
			c.change(&o)
			_, err := New(aws.Config{}, matcher(nil), o)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want %q", err, c.says)
			}
		})
	}
	if _, err := New(aws.Config{}, matcher(nil), ok); err != nil {
		t.Errorf("the zero value of the rest: %v", err)
	}
}

// Each mistake at the start is named: what, where, what to do.
func TestRefusesToStart(t *testing.T) {
	access := func(op string) func(*stub, *aws.Config, *Options) {
		return func(s *stub, _ *aws.Config, _ *Options) {
			s.fail = func(o, _ string) string {
				if o == op {
					return "AccessDeniedException"
				}
				return ""
			}
		}
	}
	for _, c := range []struct {
		name   string
		change func(*stub, *aws.Config, *Options)
		says   []string
	}{
		{"wrong tables, all at once", func(_ *stub, _ *aws.Config, o *Options) {
			o.Streams = []Stream{{Table: "nope"}, {Table: "orders"}, {Table: "neither"}}
		}, []string{`table "nope"`, `table "neither"`, "there is no such table", "us-east-1", "http://stub"}},
		{"table without a stream", func(s *stub, _ *aws.Config, _ *Options) { s.tables["orders"] = "" },
			[]string{`table "orders"`, "has no stream", "aws dynamodb update-table --table-name orders"}},
		{"wrong ARN", func(_ *stub, _ *aws.Config, o *Options) { o.Streams = []Stream{{ARN: stubARN("gone")}} },
			[]string{stubARN("gone"), "DescribeStream", "us-east-1"}},
		{"one stream by two names", func(_ *stub, _ *aws.Config, o *Options) {
			o.Streams = append(o.Streams, Stream{ARN: stubARN("orders")})
		}, []string{"Name it once"}},
		{"view type", func(s *stub, _ *aws.Config, _ *Options) { s.streams[stubARN("orders")].view = "KEYS_ONLY" },
			[]string{"KEYS_ONLY", `route "test" needs NEW_AND_OLD_IMAGES`, `table "orders"`, "--table-name orders --stream-specification StreamEnabled=false", "StreamEnabled=true"}},
		{"no start", func(_ *stub, _ *aws.Config, o *Options) { o.Start, o.StartName = "", "--start" },
			[]string{`table "orders"`, "no stored position", "--start TRIM_HORIZON", "--start LATEST"}},
		{"no credentials", func(_ *stub, cfg *aws.Config, _ *Options) { cfg.Credentials = nil },
			[]string{"no AWS credentials", "AWS_ACCESS_KEY_ID"}},
		{"no Region", func(_ *stub, cfg *aws.Config, _ *Options) { cfg.Region = "" }, []string{"AWS_REGION"}},
		{"DescribeTable not allowed", access("DescribeTable"), []string{"dynamodb:DescribeTable", `table "orders"`, "Allow"}},
		{"DescribeStream not allowed", access("DescribeStream"), []string{"dynamodb:DescribeStream", stubARN("orders")}},
		{"GetShardIterator not allowed", access("GetShardIterator"), []string{"dynamodb:GetShardIterator", stubARN("orders")}},
		{"GetRecords not allowed", access("GetRecords"), []string{"dynamodb:GetRecords", stubARN("orders")}},
		{"unreachable", func(_ *stub, cfg *aws.Config, _ *Options) {
			cfg.HTTPClient = &http.Client{Transport: refusing{}}
		}, []string{"http://stub", "DescribeTable", "connection refused", "within 5s", "AWS_ENDPOINT_URL"}},
		{"unreachable, by a name", func(_ *stub, cfg *aws.Config, o *Options) {
			cfg.HTTPClient = &http.Client{Transport: refusing{}}
			o.EndpointName = "THE_ENDPOINT"
		}, []string{"http://stub", "It was set by THE_ENDPOINT"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s, store := newStub(), state.NewMemory()
				s.table("orders", &stubShard{id: "a"})
				cfg, o := s.config(), testOptions(store, "orders")
				c.change(s, &cfg, &o)
				m := matcher(nil)
				m.route.Needs = item.BothImages
				p, err := New(cfg, m, o)
				if err != nil {
					t.Fatal(err)
				}
				err = p.Run(t.Context())
				if err == nil {
					t.Fatal("it started")
				}
				for _, part := range c.says {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("the error lacks %q:\n%v", part, err)
					}
				}
				if _, err := store.Start(t.Context(), state.Stream{Application: "sluice", ARN: stubARN("orders")}, state.Start{}); !errors.Is(err, state.ErrNoStart) {
					t.Errorf("a start was stored: %v", err)
				}
				if len(p.NotReady()) == 0 {
					t.Error("ready")
				}
			})
		})
	}
}

type refusing struct{}

func (refusing) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("dial tcp: connection refused")
}

func TestNoStartErrorType(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStub()
		s.table("orders")
		s.table("users")
		o := testOptions(state.NewMemory(), "orders", "users")
		o.Start = ""
		p, _ := New(s.config(), matcher(nil), o)
		err := p.Run(t.Context())
		var no *noStartError
		if !errors.As(err, &no) || len(no.Streams) != 2 || !errors.Is(err, state.ErrNoStart) {
			t.Errorf("%v", err)
		}
	})
}

func TestServiceComesUpDuringStart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStub()
		a := &stubShard{id: "a"}
		s.table("orders", a)
		s.put(a, "k")
		up := time.Now().Add(2 * time.Second)
		s.fail = func(string, string) string {
			if time.Now().Before(up) {
				return "ServiceUnavailable:503"
			}
			return ""
		}
		var got sink
		r := start(t, s, got.handle, testOptions(state.NewMemory(), "orders"))
		pass(6 * time.Second)
		want(t, "handled", got.all(), "a/1")
		r.mustEnd()
	})
}

func latestOptions(store state.Store) Options {
	o := testOptions(store, "orders")
	o.Start = Latest
	return o
}

// LATEST handles what is written from the start on: closed shards are finished
// unread, open ones read by a LATEST iterator, later ones from their beginning.
// When the time for the start is over in the middle of a call, the error is
// still what the service did before.
func TestStartTellsWhatIsWrongAndNotThatTimeIsUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStub()
		s.table("t", &stubShard{id: "a"})
		calls := 0
		s.fail = func(string, string) string {
			if calls++; calls == 1 {
				return "InternalServerError:500"
			}
			return "hang"
		}
		p, err := New(s.config(), matcher(nil), testOptions(state.NewMemory(), "t"))
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "InternalServerError") {
			t.Errorf("Run: %v", err)
		}
	})
}

func TestLatest(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, store := newStub(), state.NewMemory()
		a, b := &stubShard{id: "a", closed: true}, &stubShard{id: "b", parent: "a"}
		st := s.table("orders", a, b)
		s.put(a, "k")
		s.put(b, "k", "k")
		pass(time.Hour + time.Second)
		var got sink
		r := start(t, s, got.handle, latestOptions(store))
		s.put(b, "k")
		pass(time.Second)
		c := &stubShard{id: "c", parent: "b"}
		s.put(c, "k")
		s.with(func() { b.closed, st.shards = true, append(st.shards, c) })
		pass(2 * time.Second)
		want(t, "handled", got.all(), "b/3 c/1")
		r.mustEnd()
		want(t, "positions", stored(t, store, "orders"), "a@! b@3! c@1")
		want(t, "iterators of b", strings.Join(s.iterators("b"), " "), "TRIM_HORIZON LATEST") // the first is the start's trial
		want(t, "iterators of c", strings.Join(s.iterators("c"), " "), "TRIM_HORIZON")
	})
}

// A shard that the first listing leaves out, although one of its children is
// there, was closed at the start: nothing of it comes beside its children.
func TestLatestLeavesOutAParentThatIsListedLate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, store := newStub(), state.NewMemory()
		a, b := &stubShard{id: "a", closed: true}, &stubShard{id: "b", parent: "a"}
		st := s.table("orders", a, b)
		pass(time.Hour + 30*time.Second)
		s.put(a, "k") // within the margin of the start
		st.hidden["a"] = true
		var got sink
		r := start(t, s, got.handle, latestOptions(store))
		s.put(b, "k")
		s.with(func() { clear(st.hidden) })
		pass(2 * time.Minute)
		want(t, "handled", got.all(), "b/1")
		r.mustEnd()
	})
}

// Nor does anything of its ancestors, which no listing of the start showed: not
// in the same run, and not after a crash before a shard was claimed.
func TestLatestLeavesOutAncestorsThatAreListedLate(t *testing.T) {
	for _, restart := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			s, store := newStub(), state.NewMemory()
			a, b := &stubShard{id: "a", closed: true}, &stubShard{id: "b", parent: "a", closed: true}
			c, d := &stubShard{id: "c", parent: "b", closed: true}, &stubShard{id: "d", parent: "c"}
			st := s.table("orders", a, b, c, d)
			pass(time.Hour + 30*time.Second)
			for _, sh := range []*stubShard{a, b, c, d} { // within the margin of the start
				s.put(sh, "k")
			}
			st.hidden["a"], st.hidden["b"] = true, true
			if restart {
				if _, err := store.Start(t.Context(), state.Stream{Application: "sluice", ARN: stubARN("orders")},
					state.Start{Position: Latest, At: time.Now().Add(-lineage.ClockMargin)}); err != nil {
					t.Fatal(err)
				}
				if err := store.Finish(t.Context(), state.Stream{Application: "sluice", ARN: stubARN("orders")}, "b", "c"); err != nil {
					t.Fatal(err)
				}
				delete(st.hidden, "a")
			}
			var got sink
			r := start(t, s, got.handle, latestOptions(store))
			if restart { // what a is to c nobody knows yet
				pass(500 * time.Millisecond)
			}
			s.with(func() { clear(st.hidden) })
			s.put(d, "k")
			pass(2 * time.Minute)
			if restart {
				want(t, "handled", got.all(), "d/1 d/2")
			} else {
				want(t, "handled", got.all(), "d/2")
			}
			r.mustEnd()
			want(t, "positions", stored(t, store, "orders"), "a@! b@! c@! d@2")
		})
	}
}

// A restart before the first checkpoint loses nothing, nor does an iterator
// that is lost before any record. Both read the long way.
func TestLatestTheLongWay(t *testing.T) {
	for _, how := range []string{"restart", "expiry", "refused", "trimmed"} {
		t.Run(how, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s, store := newStub(), state.NewMemory()
				b := &stubShard{id: "b"}
				s.table("orders", b)
				s.put(b, "k", "k")
				pass(time.Hour + time.Second)
				first := true
				s.fail = func(op, _ string) string {
					switch {
					case how == "refused" && op == "GetShardIterator" && first:
						first = false // the trial
					case how == "trimmed" && op == "GetRecords" && len(s.calls) > 6 && first:
						first = false
						return "TrimmedDataAccessException"
					case how == "expiry" && op == "GetRecords" && len(s.calls) > 6 && first:
						first = false
						return "ExpiredIteratorException"
					}
					return ""
				}
				var got sink
				o := latestOptions(store)
				if how == "restart" {
					r := start(t, s, got.handle, o)
					r.mustEnd()
					want(t, "position", stored(t, store, "orders"), "b@")
					s.put(b, "k")
					pass(time.Hour)
					o.Start = "" // what is stored counts
				}
				r := start(t, s, got.handle, o)
				if how != "restart" {
					s.put(b, "k")
				}
				pass(time.Minute)
				want(t, "handled", got.all(), "b/3")
				r.mustEnd()
				want(t, "position", stored(t, store, "orders"), "b@3")
				if how != "refused" && !strings.Contains(r.log(), "dropped b 2") {
					t.Errorf("events: %s", r.log())
				}
			})
		})
	}
}

// overtaken is a store in which another worker is the first to store a start.
type overtaken struct {
	*state.Memory
	at func(time.Time) time.Time // the other's time, of ours
}

func (o overtaken) Start(ctx context.Context, s state.Stream, want state.Start) (state.Start, error) {
	if want.Position == Latest {
		want.At = o.at(want.At)
	}
	return o.Memory.Start(ctx, s, want)
}

// Another worker's start counts, also one of the same second: nothing is finished or
// skipped by ours.
func TestLatestOvertaken(t *testing.T) {
	for name, at := range map[string]func(time.Time) time.Time{
		"an hour before":     func(t time.Time) time.Time { return t.Add(-time.Hour) },
		"in the same second": func(t time.Time) time.Time { return t.Add(time.Second - 1).Truncate(time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s, store := newStub(), overtaken{state.NewMemory(), at}
				a, b := &stubShard{id: "a", closed: true}, &stubShard{id: "b", parent: "a"}
				s.table("orders", a, b)
				s.put(a, "k")
				pass(2 * time.Hour)
				s.put(a, "k")
				s.put(b, "k")
				var got sink
				r := start(t, s, got.handle, latestOptions(store))
				pass(2 * time.Second)
				want(t, "handled", got.all(), "a/2 b/1")
				r.mustEnd()
			})
		})
	}
}

// Records that were dropped do not move the position, so that a position says
// that a record was kept: a restart then keeps what is behind it, also what is
// older than the start, as the first reading did.
func TestARestartDropsNothingBehindAKeptRecord(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, store := newStub(), state.NewMemory()
		b := &stubShard{id: "b"}
		s.table("orders", b)
		minute := time.Now().Truncate(time.Minute).Add(time.Hour)
		at := minute.Add(30 * time.Second)
		add := func(created time.Time) {
			s.with(func() {
				b.records = append(b.records, stubRecord{stubBase + string(rune('1'+len(b.records))), "k", created})
			})
		}
		if _, err := store.Start(t.Context(), state.Stream{Application: "sluice", ARN: stubARN("orders")},
			state.Start{Position: Latest, At: at}); err != nil {
			t.Fatal(err)
		}
		read := func(wantHandled, wantStored string) {
			t.Helper()
			var got sink
			r := start(t, s, got.handle, latestOptions(store))
			pass(2 * time.Second)
			r.mustEnd()
			want(t, "handled", got.all(), wantHandled)
			want(t, "position", stored(t, store, "orders"), wantStored)
		}
		add(at.Add(-20 * time.Second))
		read("", "b@")
		add(minute) // possibly after the start
		read("b/2", "b@2")
		add(at.Add(-10 * time.Second))
		read("b/3", "b@3")
	})
}

// Creation times are rounded down, by DynamoDB Local to the minute: a record
// that may have been created after the start is kept, and all behind it.
func TestLatestKeepsWhatMayBeLater(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, store := newStub(), state.NewMemory()
		b := &stubShard{id: "b"}
		s.table("orders", b)
		minute := time.Now().Truncate(time.Minute).Add(time.Hour)
		at := minute.Add(30 * time.Second)
		for i, created := range []time.Time{at.Add(-time.Second), minute, at.Add(-10 * time.Second), at} {
			b.records = append(b.records, stubRecord{stubBase + string(rune('1'+i)), "k", created})
		}
		if _, err := store.Start(t.Context(), state.Stream{Application: "sluice", ARN: stubARN("orders")},
			state.Start{Position: Latest, At: at}); err != nil {
			t.Fatal(err)
		}
		var got sink
		o := latestOptions(store)
		o.Limit = 2
		r := start(t, s, got.handle, o)
		pass(time.Second)
		want(t, "handled", got.all(), "b/2 b/3 b/4")
		r.mustEnd()
	})
}

// A table made anew has its own positions. So has another application on the
// same store.
func TestPositionsPerStreamAndApplication(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, store := newStub(), state.NewMemory()
		a := &stubShard{id: "a"}
		st := s.table("orders", a)
		s.put(a, "k")
		var got sink
		run := func(app string) {
			o := testOptions(store, "orders")
			o.Application = app
			r := start(t, s, got.handle, o)
			pass(10 * time.Second) // so long it takes until the old stream is given up
			r.mustEnd()
		}
		run("one")
		run("two")
		s.with(func() {
			delete(s.streams, st.arn)
			st.arn += "1"
			s.tables["orders"], s.streams[st.arn] = st.arn, st
		})
		run("one")
		run("one")
		want(t, "handled", got.all(), "a/1 a/1 a/1")
	})
}

func TestRunTwice(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStub()
		s.table("orders")
		r := start(t, s, func(context.Context, *sluice.Record) error { return nil }, testOptions(state.NewMemory(), "orders"))
		r.mustEnd()
		if err := r.p.Run(t.Context()); err == nil {
			t.Error("a second Run began")
		}
	})
}
