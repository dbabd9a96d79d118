package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/reread"
)

// While one value of a line is not settled, the offset stays before the line.
func TestOffsetOfALineWithSeveral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		release := make(chan struct{})
		defer close(release)
		var w world
		w.block = func(key string) {
			if key == "stuck" {
				stop()
				<-release
			}
		}
		first := rec("a", 1) + " " + rec("b", 2) + "\n"
		p, err := Run(ctx, w.routes(), strings.NewReader(first+rec("c", 3)+" "+rec("stuck", 4)), w.options())
		if !errors.Is(err, ErrStopped) || p.Offset != int64(len(first)) {
			t.Errorf("%v, %+v, want the offset %d", err, p, len(first))
		}
	})
}

// Handlers that run when ctx ends have some time to finish, and their records count.
func TestGrace(t *testing.T) {
	for _, tt := range []struct {
		grace, takes time.Duration
		done         bool
	}{{0, 9 * time.Second, true}, {0, 11 * time.Second, false}, {time.Minute, 59 * time.Second, true}, {time.Second, 2 * time.Second, false}} {
		t.Run(fmt.Sprint(tt), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				var w world
				o := w.options()
				o.Grace, o.Attempts, o.Route = tt.grace, 1, "slow"
				m := w.routes()
				m.Handle("t#*", func(ctx context.Context, _ *sluice.Record) error {
					stop()
					select {
					case <-time.After(tt.takes):
						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				}, name("slow"))
				in := rec("a", 1) + "\n" + rec("b", 2) + "\n"
				p, err := Run(ctx, m, strings.NewReader(in), o)
				if !errors.Is(err, ErrStopped) && !(tt.done && err == nil) {
					t.Errorf("%v", err)
				}
				if (p.Done > 0) != tt.done || (p.Offset > 0) != tt.done || w.parked != nil {
					t.Errorf("%+v, parked %q: what is cut off has not failed", p, w.parked)
				}
			})
		})
	}
}

// A long input reports its progress, and at the end its last offset.
func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w world
		in := rec("a", 1) + "\n" + rec("b", 2) + "\n" + rec("skip", 3) + "\n"
		w.fails = map[string]error{"one skip": sluice.Skip("no use")}
		r, feed := io.Pipe()
		go func() {
			for line := range strings.Lines(in) {
				io.WriteString(feed, line)
				time.Sleep(1100 * time.Millisecond)
			}
			feed.Close()
		}()
		var told []Progress
		o := w.options()
		o.Progress = func(p Progress) { told = append(told, p) }
		hooked := 0
		o.Flow.Hooks.Handled = func(ctx context.Context, rec *sluice.Record, rt *sluice.Route, res flow.Result, took time.Duration, err error) {
			if rec != nil && rt != nil && took == 0 && (res == flow.Skipped) == sluice.IsSkip(err) && (res == flow.Done) == (err == nil) {
				hooked++
			}
		}
		p, err := Run(t.Context(), w.routes(), r, o)
		if err != nil || p.Done != 5 || p.Skipped != 1 || p.Offset != int64(len(in)) {
			t.Fatalf("%v, %+v", err, p)
		}
		if hooked != 6 {
			t.Errorf("the hook was called %d times as it should", hooked)
		}
		var values []int
		for _, p := range told {
			values = append(values, p.Values)
		}
		if !slices.Equal(values, []int{1, 2, 3, 3}) || told[3] != p {
			t.Errorf("told %+v", told)
		}
		if one := int64(len(rec("a", 1))) + 1; told[1].Offset < one {
			t.Errorf("after 2 s the offset is %d: the first line, of %d bytes, was handled", told[1].Offset, one)
		}
	})
}

// A line that is cut off does not change its neighbours or their offsets.
func TestLinesApart(t *testing.T) {
	in := "{\"cut\":\n" + rec("a", 1) + "\n" + "  " + rec("b", 2) + "\n" + "{\"off\n" + "[\n" + rec("c", 3) + "]\n" + "[\n  " + rec("d", 4) + "\n]\n" + rec("e", 5) + "\nx\n"
	var w world
	var bad []string
	o := w.options()
	o.Bad = func(b Bad) error {
		bad = append(bad, fmt.Sprintf("%d %s", b.Line, b.Text))
		return nil
	}
	p, err := Run(t.Context(), w.routes(), strings.NewReader(in), o)
	if err != nil || p.Offset != int64(len(in)) || p.Done != 8 {
		t.Errorf("%v, %+v of %d bytes", err, p, len(in))
	}
	if want := []string{`1 {"cut":`, `4 {"off`, "5 [", "6 " + rec("c", 3) + "]", "11 x"}; !slices.Equal(bad, want) {
		t.Errorf("bad %q, want %q", bad, want)
	}

	// Stopped at one of lines that stand together, it goes on at that line.
	lines := []string{"{\"cut\":\n", "  " + rec("a", 1) + "\n", "  " + rec("b", 2) + "\n"}
	o.Bad = func(Bad) error { return nil }
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		release := make(chan struct{})
		defer close(release)
		w := world{block: func(key string) {
			if key == "b" {
				stop()
				<-release
			}
		}}
		o.Flow.DeadLetter = &w
		p, err := Run(ctx, w.routes(), strings.NewReader(strings.Join(lines, "")), o)
		if want := int64(len(lines[0]) + len(lines[1])); !errors.Is(err, ErrStopped) && err != nil || p.Offset != want {
			t.Errorf("%v, %+v, want the offset %d", err, p, want)
		}
	})
}

// A record that had not begun at the stop is not before the offset, in any kind of
// value.
func TestStoppedBeforeItBegan(t *testing.T) {
	event := `{"Records":[` + rec("b", 2) + "," + rec("c", 3) + `]}`
	for kind, second := range map[string]string{
		"a record": rec("b", 2), "an event": event, "a letter": letter("b", 2, ""), "a notification": nest(event, 2), "messages": `{"Messages":[{"Body":` + quoted(event) + `}]}`,
		"a payload": `{"requestContext":{},"payload":` + event + `}`, "a payload as text": `{"requestContext":{},"payload":` + quoted(event) + `}`,
		"a range": `{"DDBStreamBatchInfo":{"shardId":"s","streamArn":"a",` + first(2) + `,` + last(3) + `}}`,
	} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				var w world
				w.block = func(key string) {
					if key == "a" {
						time.Sleep(2 * time.Second)
					}
				}
				o := w.options()
				o.Flow.Window, o.Route = 1, "one"
				o.Reread = func(_ context.Context, _ reread.Range, f func([]sluice.Record) error) error {
					return f([]sluice.Record{*sluice.DecodeRecord([]byte(rec("b", 2)))})
				}
				time.AfterFunc(time.Second, stop)
				first := rec("a", 1) + "\n"
				p, err := Run(ctx, w.routes(), strings.NewReader(first+second+"\n"+rec("d", 4)), o)
				if !errors.Is(err, ErrStopped) || p.Offset != int64(len(first)) || p.Bad != 0 || p.Done != 1 {
					t.Errorf("%v, %+v, want the offset %d", err, p, len(first))
				}
			})
		})
	}
}

// A failing record that cannot be stored stops the replay.
func TestParkingFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := world{fails: map[string]error{"one a": sluice.Permanent(errors.New("never"))}}
		in := rec("a", 1)
		o := w.options()
		box := &full{DeadLetter: &w, fails: 3}
		o.Flow.DeadLetter, o.Flow.Logger = box, slog.New(slog.DiscardHandler)
		if p, err := Run(t.Context(), w.routes(), strings.NewReader(in), o); err != nil || p.Parked != 1 || len(w.parked) != 1 || p.Offset != int64(len(in)) {
			t.Errorf("for a while: %v, %+v, parked %q", err, p, w.parked)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		box.fails = 1 << 30
		o.Route = "one"
		if p, err := Run(ctx, w.routes(), strings.NewReader(in), o); !errors.Is(err, ErrStopped) || p.Parked != 0 || p.Offset != 0 {
			t.Errorf("for good: %v, %+v", err, p)
		}
	})
}

// full keeps nothing the first times.
type full struct {
	flow.DeadLetter
	fails int
}

func (f *full) Park(ctx context.Context, rec *sluice.Record, why sluice.Failure) error {
	if f.fails--; f.fails >= 0 {
		return errors.New("no space left")
	}
	return f.DeadLetter.Park(ctx, rec, why)
}
