package flow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/recordtest"
)

// Dead letters whose disk is full must not fill another one with the log.
func TestFailingDeadLettersDoNotFillTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		d := &letters{errs: make([]error, 1500)}
		for i := range d.errs {
			d.errs[i] = errors.New("full")
		}
		var failed atomic.Int64
		f := Open(t.Context(), routes(func(context.Context, *sluice.Record) error { return sluice.Permanent(errDown) }), Options{
			DeadLetter: d, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError})),
			Hooks: Hooks{ParkFailed: func(*sluice.Record, *sluice.Route, error) { failed.Add(1) }},
		})
		for i := range 100 {
			mustSubmit(t, f, rec(fmt.Sprint(i), i+1))
		}
		time.Sleep(tellEvery - time.Millisecond)
		synctest.Wait()
		tries := failed.Load()
		if lines := strings.Count(log.String(), "dead letters failed"); lines != 1 || tries < 100 {
			t.Errorf("%d lines for %d failures within a second", lines, tries)
		}
		mustClose(t, f, 100)
		var told int64 // lines, and those that they stand for
		for _, n := range regexp.MustCompile(`deadLetterError=full unlogged=(\d+)\n`).FindAllStringSubmatch(log.String(), -1) {
			unlogged, _ := strconv.ParseInt(n[1], 10, 64)
			told += 1 + unlogged
		}
		if told < tries || told > failed.Load() || failed.Load() != 1500 {
			t.Errorf("the log tells of %d failures, there were %d, %d of them in the first second", told, failed.Load(), tries)
		}
	})
}

// named are dead letters with ids.
type named struct{ letters }

func (*named) ID(rec *sluice.Record, route string) string { return route + "/" + rec.EventID }

// The line of a parked record says where to find it; what a record of a backfill
// has not, a shard and a position in it, is not told as empty.
func TestParkedRecordIsNamedInTheLog(t *testing.T) {
	seven := recordtest.Sequence(7)
	for _, tt := range []struct {
		name   string
		record *sluice.Record
		want   string
	}{
		{"of a stream", &sluice.Record{EventID: "e-1", Table: "orders", ShardID: "shard-1", Sequence: seven},
			`route=a table=orders shard=shard-1 sequence=` + string(seven) + ` event=e-1 attempts=1 error=down deadLetter=a/e-1`},
		{"of a Lambda event", &sluice.Record{EventID: "e-1", Table: "orders", Sequence: seven},
			`route=a table=orders sequence=` + string(seven) + ` event=e-1 attempts=1 error=down deadLetter=a/e-1`},
		{"of a backfill", &sluice.Record{EventID: "e-1", EventName: sluice.Snapshot, Table: "orders"},
			`route=a table=orders event=e-1 attempts=1 error=down deadLetter=a/e-1`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				f := Open(t.Context(), routes(func(context.Context, *sluice.Record) error { return sluice.Permanent(errDown) }), Options{
					DeadLetter: &named{}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
				})
				mustSubmit(t, f, *tt.record)
				mustClose(t, f, 1)
				if want := `msg="record parked as a dead letter" ` + tt.want + "\n"; !strings.HasSuffix(log.String(), want) {
					t.Errorf("%s\nwant %s", log.String(), want)
				}
			})
		})
	}
}
