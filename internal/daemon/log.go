package daemon

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluicehq/sluice/internal/awserror"
	"github.com/sluicehq/sluice/tracing"
)

func newLogger(o Options, w io.Writer) *slog.Logger {
	ho := &slog.HandlerOptions{Level: o.level(), ReplaceAttr: shortened}
	var h slog.Handler = slog.NewTextHandler(w, ho)
	if o.LogFormat == "json" {
		h = slog.NewJSONHandler(w, ho)
	}
	return slog.New(&repeats{Handler: tracing.Logs(h), recent: &recentErrors{byKey: make(map[string]recentError)}})
}

// everyLine is logger for an application: a route that logs, or a handler, decides
// itself which of its errors are alike.
func everyLine(logger *slog.Logger) *slog.Logger {
	if h, ok := logger.Handler().(*repeats); ok {
		return slog.New(h.Handler)
	}
	return logger
}

// streamARN is that of a stream.
var streamARN = regexp.MustCompile(`arn:aws[\w-]*:dynamodb:[\w-]*:\d*:table/([\w.-]+)/stream/([\w.:-]+)`)

// shortened says a stream's ARN as table and label, and an error of AWS in the
// words of awserror.
func shortened(_ []string, a slog.Attr) slog.Attr {
	text := ""
	switch v := a.Value.Any().(type) {
	case error:
		if v := reflect.ValueOf(v); v.Kind() == reflect.Pointer && v.IsNil() {
			return a // slog knows what to make of it
		}
		text = awserror.Plain(v.Error())
	case string:
		text = v
	default:
		return a
	}
	return slog.String(a.Key, shortARNs(text))
}

func shortARNs(text string) string { return streamARN.ReplaceAllString(text, "$1/stream/$2") }

// repeatEvery is how often an error is logged that repeats.
const repeatEvery = time.Minute

// changing are the keys whose values differ between repetitions of one error.
var changing = []string{"error", "firstError", "deadLetterError", "message", "received", "sequence", "event", "key", "retryIn", "took", "attempts", "age", "since", "shards", "unlogged"}

// maxRecentErrors is how many errors are remembered.
const maxRecentErrors = 1000

// repeats writes an error once, and while it repeats once a minute, with the
// number of lines in between. A full disk must not fill the log. It leaves out the lines
// of held records.
type repeats struct {
	slog.Handler
	recent *recentErrors
	prefix string // of the attributes that all lines have
}

type recentErrors struct {
	mu    sync.Mutex
	byKey map[string]recentError
}

type recentError struct {
	written time.Time
	omitted int // lines since then
}

func (h *repeats) Handle(ctx context.Context, r slog.Record) error {
	switch {
	case isHeld(r):
		return nil
	case r.Level < slog.LevelError:
		return h.Handler.Handle(ctx, r)
	}
	var key strings.Builder
	key.WriteString(h.prefix + r.Message)
	r.Attrs(func(a slog.Attr) bool {
		if !slices.Contains(changing, a.Key) {
			key.WriteString("\x00" + a.String())
		}
		return true
	})
	omitted, write := h.recent.note(key.String(), r.Time)
	if !write {
		return nil
	}
	if omitted > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("repeated", omitted))
	}
	return h.Handler.Handle(ctx, r)
}

// note reports whether a line is written at now, and how many like it were omitted.
func (s *recentErrors) note(key string, now time.Time) (omitted int, write bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, known := s.byKey[key]
	if known && now.Sub(e.written) < repeatEvery {
		s.byKey[key] = recentError{e.written, e.omitted + 1}
		return 0, false
	}
	if !known && len(s.byKey) >= maxRecentErrors {
		clear(s.byKey) // errors of so many kinds are no repetition
	}
	s.byKey[key] = recentError{written: now}
	return e.omitted, true
}

func (h *repeats) WithAttrs(attrs []slog.Attr) slog.Handler {
	prefix := h.prefix
	for _, a := range attrs {
		prefix += a.String() + "\x00"
	}
	return &repeats{h.Handler.WithAttrs(attrs), h.recent, prefix}
}

func (h *repeats) WithGroup(name string) slog.Handler {
	return &repeats{h.Handler.WithGroup(name), h.recent, h.prefix + name + "\x00"}
}

// heldError is why a held record is tried again later.
type heldError struct{ error }

func (e heldError) Unwrap() error { return e.error }

// isHeld reports whether a line is of a held record. Each is retried every checkEvery,
// and checks.run logs when its route is held and when it continues.
func isHeld(r slog.Record) (held bool) {
	if r.Message == "record failed: will be tried again" || r.Message == "message failed: it comes again" {
		r.Attrs(func(a slog.Attr) bool {
			err, ok := a.Value.Any().(error)
			held = ok && errors.As(err, new(heldError))
			return !held
		})
	}
	return held
}
