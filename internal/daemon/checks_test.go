package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/awserror"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/sinks/opensearch"
	"github.com/sluicehq/sluice/streamtest"
)

var refused = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}

// twoSinks has a route for each of two sinks, and one for both. It calls handled with
// the called route.
func twoSinks(handled func(route, id string)) *router.Router {
	m := router.New()
	for _, name := range []string{"alert", "search", "both"} {
		m.Handle("*#*", func(_ context.Context, rec *sluice.Record) error {
			id, _ := rec.Keys.Lookup("id")
			handled(name, id.Str())
			return nil
		}, router.Name(name), router.Backoff(time.Second, time.Second))
	}
	return m
}

// A sink that is down at the start holds its routes, and no other. What it is not
// fit for when it is back holds them on, for hours: nothing is parked, and in the
// end every change was handled in its order.
func TestSinkIsDownAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t)
		table := c.CreateTable("orders", streamtest.TableOptions{PartitionKey: "id"})
		calls := make(chan string, 1000)
		m := twoSinks(func(route, id string) { calls <- route + " " + id })
		var answer atomic.Pointer[error]
		set := func(err error) { answer.Store(&err) }
		set(refused)
		held := &checks{}
		s := Setup{checks: held}
		s.Check("index", func(context.Context) error { return *answer.Load() }, "search", "both")
		s.Check("queue", func(context.Context) error { return nil })
		if err := held.start(t.Context(), m, false); err != nil {
			t.Fatal(err)
		}
		w := wireHeld(t, c, held, m, Options{Tables: []string{"orders"}})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); held.run(ctx, slog.New(slog.NewTextHandler(w.log, nil))) }()
		handled := func(want ...string) {
			t.Helper()
			var got []string
			for len(calls) > 0 {
				got = append(got, <-calls)
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("handled %q, want %q", got, want)
			}
		}
		unready := func(want string) {
			t.Helper()
			if got := strings.Join(w.unready(), "\n"); !strings.Contains(got, want) || want == "" && got != "" {
				t.Errorf("not ready: %q, want %q", got, want)
			}
		}
		put := func(id string, n int) { table.Put(map[string]any{"id": id, "n": n}) }

		put("a", 1)
		time.Sleep(10 * time.Second)
		handled("alert a")
		unready("sink index is down since 2000-01-01T00:00:00Z: dial tcp: connection refused; it holds these routes until it answers: search, both")
		if got := held.forEverybody(); len(got) != 1 || strings.Contains(got[0], "refused") {
			t.Errorf("without a token: %q", got)
		}

		set(errors.New("the alias is missing"))
		put("b", 1)
		time.Sleep(3 * time.Hour)
		handled("alert b")
		unready("sink index fails its check since 2000-01-01T00:00:00Z: the alias is missing; it holds these routes until that is mended: search, both")
		if letters, _, err := w.box.List(t.Context(), "", 10); err != nil || len(letters) != 0 {
			t.Errorf("parked: %+v, %v", letters, err)
		}
		if n := strings.Count(w.log.String(), "the sink answers, and its check fails"); n != 1 {
			t.Errorf("logged %d times", n)
		}

		if strings.Contains(w.log.String(), "will be tried again") {
			t.Error("each try of a held record is logged")
		}

		set(nil)
		time.Sleep(time.Minute)
		if n := strings.Count(w.log.String(), "its routes go on"); n != 1 {
			t.Errorf("%d lines say that the routes go on", n)
		}
		handled("both a", "both b", "search a", "search b")
		put("a", 2)
		time.Sleep(time.Minute)
		handled("alert a", "both a", "search a")
		unready("")
		<-ended // it is not asked any more
		cancel()
		w.stop()
	})
}

// A sink that answers with a mistake ends the daemon. So does a required sink that is
// down. The daemon reports all such sinks at once.
func TestSinksThatEndTheStart(t *testing.T) {
	for name, tt := range map[string]struct {
		required bool
		want     string
	}{
		"wrong":    {false, "the queue is none"},
		"required": {true, "dial tcp: connection refused\nthe queue is none"},
	} {
		t.Run(name, func(t *testing.T) {
			held := &checks{}
			s := Setup{checks: held}
			s.Check("index", func(context.Context) error { return refused })
			s.Check("queue", func(context.Context) error { return errors.New("the queue is none") })
			if err := held.start(t.Context(), twoSinks(nil), tt.required); err == nil || err.Error() != tt.want {
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
	held := &checks{}
	Setup{checks: held}.Check("index", func(context.Context) error { return nil }, "find")
	if err := held.start(t.Context(), twoSinks(nil), false); err == nil || err.Error() != `the check of sink index names route "find": the routes are alert, search, both` {
		t.Error(err)
	}
	Setup{}.Check("index", nil) // of a function: nothing happens
}

// A sink that does not answer delays the start by checkStart. One that is required
// ends it after checkWithin.
func TestSinkGivesNoAnswer(t *testing.T) {
	for required, within := range map[bool]time.Duration{false: checkStart, true: checkWithin} {
		synctest.Test(t, func(t *testing.T) {
			held := &checks{}
			s := Setup{checks: held}
			for range 3 {
				s.Check("index", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
			}
			begin := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			err := held.start(ctx, twoSinks(nil), required)
			if took := time.Since(begin); took != within || (err != nil) != required || !required && len(held.holding) != 3 {
				t.Errorf("required %v: %v, %d sinks hold, after %v", required, err, len(held.holding), took)
			}
		})
	}
}

// proxied is an error of the SDK for a page of HTML, as proxies send it.
func proxied(status int) error {
	return &smithy.OperationError{ServiceID: "SQS", OperationName: "GetQueueUrl", Err: &smithyhttp.ResponseError{
		Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status}},
		Err:      &smithy.DeserializationError{Err: errors.New("invalid character '<' looking for beginning of value")},
	}}
}

// broken is the error of a call to AWS whose answer, of status 200, ends too early.
func broken(err error) error {
	return &smithy.OperationError{ServiceID: "SQS", OperationName: "GetQueueUrl", Err: &smithyhttp.ResponseError{
		Response: &smithyhttp.Response{Response: &http.Response{StatusCode: http.StatusOK}},
		Err:      &smithy.DeserializationError{Err: err},
	}}
}

func TestIsDown(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{refused, true},
		{&url.Error{Op: "Get", URL: "http://x", Err: refused}, true},
		{fmt.Errorf("sinks.search: %w", errors.Join(context.DeadlineExceeded)), true},
		{&net.DNSError{IsNotFound: true}, true},
		{fmt.Errorf("no answer: %w", io.EOF), true}, // of the OpenSearch client
		{&opensearch.StatusError{Status: 503}, true},
		{&opensearch.StatusError{Status: 429}, true},
		{&opensearch.StatusError{Status: 401}, false},
		{&url.Error{Op: "Get", URL: "https://x", Err: &tls.CertificateVerificationError{Err: errors.New("unknown authority")}}, false},
		{&smithy.GenericAPIError{Code: "ServiceUnavailable"}, true},
		{&smithy.GenericAPIError{Code: "QueueDoesNotExist"}, false},
		{&smithy.GenericAPIError{Code: "AccessDenied"}, false},
		{&smithy.OperationError{Err: fmt.Errorf("failed to retrieve credentials: %w", refused)}, false},
		{&awserror.CredentialsError{What: "role", Err: context.DeadlineExceeded}, true},
		{&awserror.CredentialsError{What: "role", Err: &smithy.GenericAPIError{Code: "Throttling"}}, true},
		{&awserror.CredentialsError{What: "role", Err: &smithy.GenericAPIError{Code: "AccessDenied"}}, false},
		{&awserror.CredentialsError{What: "profile", Err: errors.New("no such profile")}, false},
		{proxied(502), true},
		{proxied(503), true},
		{proxied(429), true},
		{proxied(404), false},
		{broken(io.ErrUnexpectedEOF), true},
		{broken(context.DeadlineExceeded), true},
		{errors.New("it is a FIFO queue"), false},
	} {
		if got := isDown(tt.err); got != tt.want {
			t.Errorf("%v: %v", tt.err, got)
		}
	}
}

// A sink that is down costs a message few receives: a queue's redrive policy counts
// them. While all routes for messages are held, nothing is received; else a held
// message is seldom received, and the others keep their pace.
func TestHeldMessages(t *testing.T) {
	const minutes = 30
	for name, tt := range map[string]struct {
		held []string
		most int // receives of a held message
	}{
		"all":     {[]string{"mail", "call"}, 0},
		"some":    {[]string{"mail"}, 4},
		"another": {[]string{"row"}, 0}, // takes no messages
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud(t)
				var handled [2]atomic.Int64
				m := router.New()
				m.Handle("mail#MESSAGE", func(context.Context, *sluice.Record) error { handled[0].Add(1); return nil }, router.Name("mail"))
				m.Handle("call#MESSAGE", func(context.Context, *sluice.Record) error { handled[1].Add(1); return nil }, router.Name("call"))
				m.Handle("*#*", func(context.Context, *sluice.Record) error { return nil }, router.Name("row"))
				var back atomic.Bool
				held := &checks{}
				Setup{checks: held}.Check("index", func(context.Context) error {
					if back.Load() {
						return nil
					}
					return refused
				}, tt.held...)
				if err := held.start(t.Context(), m, false); err != nil {
					t.Fatal(err)
				}
				w := wireHeld(t, c, held, m, Options{Queues: []string{"jobs"}})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				ended := make(chan struct{})
				go func() { defer close(ended); held.run(ctx, slog.New(slog.DiscardHandler)) }()
				<-w.sources.consumer.Opened()
				want := func(mails, calls int) {
					t.Helper()
					synctest.Wait()
					if got := [2]int64{handled[0].Load(), handled[1].Load()}; got != [2]int64{int64(mails), int64(calls)} {
						t.Errorf("%d mails and %d calls were handled, want %d and %d", got[0], got[1], mails, calls)
					}
				}
				for i := range 20 {
					c.send(fmt.Sprintf(`{"kind":"mail","n":%d}`, i))
				}
				time.Sleep(time.Second)
				runs := func(route string, n int) int {
					if slices.Contains(tt.held, route) {
						return 0
					}
					return n
				}
				for i := range minutes * 6 {
					c.send(fmt.Sprintf(`{"kind":"call","n":%d}`, i))
					time.Sleep(time.Second) // its pace
					want(runs("mail", 20), runs("call", i+1))
					time.Sleep(9 * time.Second)
				}
				for body, n := range c.receives() {
					if n > tt.most {
						t.Errorf("%s was received %d times in %d minutes", body, n, minutes)
						break
					}
				}
				if letters, _, err := w.box.List(t.Context(), "", 10); err != nil || len(letters) != 0 {
					t.Errorf("parked: %+v, %v", letters, err)
				}
				if strings.Contains(w.log.String(), "is not checked since") {
					t.Error("each receive of a held message is logged")
				}
				back.Store(true)
				time.Sleep(2 * time.Hour)
				want(20, minutes*6)
				<-ended
				w.stop()
			})
		})
	}
}
