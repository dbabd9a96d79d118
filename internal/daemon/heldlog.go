package daemon

import (
	"context"
	"errors"
	"log/slog"
)

// heldError is why a held record is tried again later.
type heldError struct{ error }

func (e heldError) Unwrap() error { return e.error }

// withoutHeld returns logger without the lines of held records. Each is retried
// every checkEvery, and checks.run logs when its route is held and when it
// continues.
func withoutHeld(logger *slog.Logger) *slog.Logger { return slog.New(heldFilter{logger.Handler()}) }

type heldFilter struct{ slog.Handler }

func (h heldFilter) Handle(ctx context.Context, r slog.Record) error {
	held := false
	r.Attrs(func(a slog.Attr) bool {
		err, ok := a.Value.Any().(error)
		held = ok && errors.As(err, new(heldError))
		return !held
	})
	if held && (r.Message == "record failed: will be tried again" || r.Message == "message failed: it comes again") {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

func (h heldFilter) WithAttrs(attrs []slog.Attr) slog.Handler {
	return heldFilter{h.Handler.WithAttrs(attrs)}
}

func (h heldFilter) WithGroup(name string) slog.Handler { return heldFilter{h.Handler.WithGroup(name)} }
