package config

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/keyhash"
)

func (b *builder) log(rt *Route, field string) (*built, error) {
	level := slog.LevelInfo
	switch rt.Log.Level {
	case "debug":
		level = slog.LevelDebug
	case "", "info":
	case "warn":
		level = slog.LevelWarn
	case "error":
		level = slog.LevelError
	default:
		return nil, b.c.wrong(field+".level", fmt.Errorf("%q is not one of debug, info, warn and error", rt.Log.Level))
	}
	text := rt.Log.Message
	if text == "" {
		text = "record"
	}
	name, logger := rt.name(), b.s.Logger
	made := &built{late: true}
	made.handle = func(ctx context.Context, rec *sluice.Record) error {
		logger.LogAttrs(ctx, level, text,
			slog.String("route", name), slog.String("event", string(rec.EventName)), slog.String("table", rec.Table),
			slog.String("key", keyhash.Item(rec.Keys)), slog.String("sequence", string(rec.Sequence)),
			slog.String("origin", rec.Origin.String()))
		return nil
	}
	made.Explain = func(_ context.Context, rec *sluice.Record) ([]Effect, error) {
		return []Effect{{Does: fmt.Sprintf("log %q as %s", text, level), Sink: "log", Target: rec.Table, Key: string(rec.Keys.AppendJSON(nil))}}, nil
	}
	return made, nil
}
