package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/snapshot"
	"github.com/sluicehq/sluice/internal/statestore"
	"github.com/sluicehq/sluice/state/boltstate"
)

// ErrUnfinished is wrapped when a backfill was stopped before its end. The next
// one continues there.
var ErrUnfinished = errors.New("stopped before the end of the table: the same command goes on where it was")

// ErrParked is wrapped when a backfill is finished, now or before, and items of
// the table are dead letters of it.
var ErrParked = errors.New("failed for good")

// Backfill reads one table whole for the application's routes, beside no live
// reading, and returns when all of it is settled or ctx has ended. Of o it takes
// Application, Tables, which is one, State, Grace, Endpoint, Limits and the
// log's options; s.Flow is made of them; s says the rest. No other process may read
// the same table whole meanwhile.
//
// It returns nil when every item is settled, a [*UsageError] when o is wrong,
// [ErrUnfinished], [ErrParked], or what [snapshot.Source.Run] returns.
func Backfill(ctx context.Context, a App, o Options, s snapshot.Options, env func(string) string, stderr io.Writer) (err error) {
	a = a.withDefaults()
	o.Listen, o.DeadLetter, o.Queues = "off", "record", nil
	o = o.withDefaults(a)
	if len(o.Tables) == 0 {
		return &UsageError{fmt.Errorf("--table (%s): no table is named: say which to read, such as --table orders", envOf["table"])}
	}
	if err := o.validate(); err != nil {
		return err
	}
	if len(o.Tables) != 1 {
		return &UsageError{fmt.Errorf("--table (%s): %q are named: one backfill reads one table", envOf["table"], o.Tables)}
	}
	if _, err := findState(o.State); err != nil {
		return err
	}
	logger := newLogger(o, stderr)
	aws, all, err := loadAWS(ctx, env, o, logger)
	if err != nil {
		return err
	}
	none := &unrouted{logger: logger}
	m, err := a.routes(ctx, Setup{Tables: o.tableNames(), Env: env, Logger: everyLine(logger), AWS: aws, Accounts: all,
		unrouted: none})
	if err != nil {
		return err
	}
	store, err := o.open(ctx, aws)
	if errors.Is(err, boltstate.ErrLocked) {
		return fmt.Errorf("--state (%s): %w. If that is the daemon that reads the table's stream, have it read the table, too, by its flag --backfill; or, if it has stored where it begins, name a file of this command's own and say --without-stream", envOf["state"], err)
	}
	if err != nil {
		return fmt.Errorf("--state (%s): %w", envOf["state"], err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if err := statestore.Ready(ctx, store, o.Application); err != nil {
		return err
	}
	s.Application, s.Table, s.Store, s.Grace = o.Application, o.tableNames()[0], store, o.Grace-min(time.Second, o.Grace/10)
	box := deadletter.NewBox(store, o.Application)
	s.Flow = o.Limits
	s.Scan.Logger, s.Flow.Logger, s.Flow.DeadLetter, s.Flow.Group = logger, logger, box, flow.NewGroup(m)
	throttles := newThrottles(store, o.Application, s.Flow.Group, false, true, logger)
	if err := throttles.refresh(ctx); err != nil {
		return fmt.Errorf("%s: %w", statestore.Describe(o.State), err)
	}
	source, err := snapshot.New(aws("dynamodb"), m, s)
	if err != nil {
		return err
	}
	watched, unwatch := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { throttles.watch(watched) })
	err = source.Run(ctx)
	unwatch()
	watch.Wait()
	switch {
	case errors.Is(err, snapshot.ErrNoStream):
		return fmt.Errorf("%w, by --without-stream", err)
	case err == nil && !source.Progress().Finished:
		err = fmt.Errorf("table %q: %w", s.Table, ErrUnfinished)
	}
	if p := source.Progress(); p.Items > 0 && none.n.Load() >= p.Items {
		logger.Warn("no item took a route: nothing was written", "table", s.Table, "items", p.Items)
	}
	parked, unread := backfilled(context.WithoutCancel(ctx), box, s.Table)
	switch {
	case unread != nil:
		return errors.Join(err, fmt.Errorf("%s: %w", statestore.Describe(o.State), unread))
	case parked == 0:
		return err
	case err == nil:
		err = fmt.Errorf("table %q is read to its end", s.Table)
	}
	return fmt.Errorf("%w, but %s %w: see the dead letters in the %s, by sluice dlq list --state %s --application %s --table %s",
		err, plural(parked, "item"), ErrParked, statestore.Describe(o.State), word(o.State), word(o.Application), s.Table)
}

// word is text as one word of a shell's command line.
func word(text string) string {
	if text == "" || strings.ContainsAny(text, " \t'\"$`\\;&|<>()*?[]#~!") {
		return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	}
	return text
}

// backfilled counts the dead letters that backfills of a table have left.
func backfilled(ctx context.Context, box *deadletter.Box, table string) (n int, err error) {
	const page = 100
	for after := ""; ; {
		entries, last, err := box.List(ctx, after, page)
		if err != nil {
			return 0, err
		}
		for _, e := range entries {
			if e.EventName == sluice.Snapshot && e.Table == table {
				n++
			}
		}
		if last == "" || last == after {
			return n, nil
		}
		after = last
	}
}
