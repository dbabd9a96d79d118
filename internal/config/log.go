package config

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/keyhash"
)

// Log writes a line for each record, with a hash of its key.
type Log struct {
	// Level of the line. Default info.
	Level string `yaml:"level" is:"one of=debug|info|warn|error" default:"info"`
	// Text of the line. Default record.
	Message string `yaml:"message" default:"record"`
}

var levels = map[string]slog.Level{"debug": slog.LevelDebug, "warn": slog.LevelWarn, "error": slog.LevelError}

func (*Log) check(*Config, string, *Route) {}

func (o *Log) build(b *builder, _ string, r *Route) (*built, error) {
	level, text := levels[o.Level], cmp.Or(o.Message, "record")
	name, logger := r.Name, b.s.Logger
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
