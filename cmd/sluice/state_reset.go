package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/internal/statestore"
	"github.com/sluicehq/sluice/sources/poller"
	"github.com/sluicehq/sluice/state"
)

const forgotten = "forgotten"

// latestMargin is what clocks may differ by: rather repeat than skip.
const latestMargin = 2 * time.Second

func stateResetCommand(c *cli) *cobra.Command {
	file := stateFile{c: c}
	var to, shard string
	var yes, asJSON bool
	cmd := &cobra.Command{
		Use:   "reset TABLE|STREAM",
		Short: "Have a stream or a shard read anew",
		Long: `Set the position of a stream, or of one shard. The command says which records it will
repeat or skip, and asks.

  --to TRIM_HORIZON  handle again every record that the stream still has (24 hours)
  --to LATEST        skip the records written until now and not handled
  --to forgotten     as if never read: the next start needs --start

--shard needs --to TRIM_HORIZON. It also resets the shard's descendants, to keep changes
in order. Handlers must tolerate repetition. Dead letters and backfills stay.`,
		Example: `  sluice state reset orders --to LATEST
  sluice state reset orders --shard shardId-00000001414576573621-f55eea83 --to TRIM_HORIZON`,
		Args:              oneStream,
		ValidArgsFunction: file.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case !slices.Contains([]string{poller.TrimHorizon, poller.Latest, forgotten}, to):
				return usage("--to: %q is not one of %s, %s, %s", to, poller.TrimHorizon, poller.Latest, forgotten)
			case shard != "" && to != poller.TrimHorizon:
				return usage("--shard: one shard can be read anew, --to %s; what is to be skipped is a stream's", poller.TrimHorizon)
			}
			return file.with(cmd.Context(), func(store statestore.Store, app string) error {
				streams, err := namedStreams(cmd.Context(), store, app, args[0])
				if err != nil {
					return err
				}
				if len(streams) > 1 {
					arns := mapped(streams, func(s streamState) string { return s.ARN })
					return usage("the table has had several streams: name one: %s", strings.Join(arns, ", "))
				}
				return c.reset(cmd.Context(), store, streams[0], shard, to, yes, asJSON)
			})
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&to, "to", "", "TRIM_HORIZON, LATEST or forgotten")
	fs.StringVar(&shard, "shard", "", "reset the shard of this `id` and its descendants")
	fs.BoolVar(&yes, "yes", false, "do not ask")
	fs.BoolVar(&asJSON, "json", false, "print JSON, one object a line")
	file.addFlags(fs)
	return cmd
}

// resetState is the result of a reset.
type resetState struct {
	Application string    `json:"application"`
	Table       string    `json:"table"`
	ARN         string    `json:"arn"`
	To          string    `json:"to"`
	StartAt     time.Time `json:"startAt,omitzero"` // of LATEST: older records are skipped
	Shards      []string  `json:"shards"`           // deleted shards
}

func (c *cli) reset(ctx context.Context, store statestore.Store, s streamState, shard, to string, yes, asJSON bool) error {
	st := state.Stream{Application: s.Application, ARN: s.ARN}
	done := resetState{Application: s.Application, Table: s.Table, ARN: s.ARN, To: to, Shards: []string{}}
	settled := 0
	for _, sh := range s.Shards {
		done.Shards = append(done.Shards, sh.ID)
		if sh.Position != "" || sh.Finished {
			settled++
		}
	}
	what := fmt.Sprintf("stream %s of table %s", s.ARN, s.Table)
	var start state.Start // of the whole stream
	var means string
	switch {
	case shard != "":
		ids := descendants(s.Shards, shard)
		if ids == nil {
			return fmt.Errorf("nothing is stored of shard %q: sluice state show %s lists the shards", shard, s.Table)
		}
		done.Shards = ids
		what = "shards " + strings.Join(ids, ", ") + " of table " + s.Table
		means = "All that they still hold is handled again, from their beginning."
		if s.Start == poller.Latest {
			means += " What was written before " + s.StartAt.UTC().Format(time.RFC3339) + ", where the stream was begun, is left out."
		}
	case to == poller.TrimHorizon:
		means = "All that the stream still holds, up to a day, is handled again."
		start.Position = to
	case to == poller.Latest:
		at := time.Now().Add(-latestMargin)
		done.StartAt = at.UTC()
		means = "All that was written before " + at.UTC().Format(time.RFC3339) + " and is not handled yet is skipped, for good."
		start = state.Start{Position: to, At: at}
	default:
		means = "The next start needs --start, or source.start of the configuration, which decides what is repeated or skipped."
	}
	if to != forgotten {
		what += " to " + to
	}
	if shard == "" {
		means = fmt.Sprintf("How far it was read is forgotten, in %s. %s", plural(settled, "shard", "shards"), means)
	}
	if err := c.confirm(yes, "reset %s? %s", what, means); err != nil {
		return err
	}
	reset := func() error { return store.ResetStream(ctx, st, start) }
	if shard != "" {
		reset = func() error { return store.ResetShards(ctx, st, done.Shards...) }
	}
	if err := reset(); err != nil {
		return err
	}
	return c.answer(asJSON, done, "reset %s. %s\n", what, means)
}

// descendants returns a shard and its stored descendants; nil if the shard is not
// stored.
func descendants(shards []shardState, id string) (ids []string) {
	if !slices.ContainsFunc(shards, func(sh shardState) bool { return sh.ID == id }) {
		return nil
	}
	ids = []string{id}
	for i := 0; i < len(ids); i++ {
		for _, sh := range shards {
			if sh.Parent == ids[i] && !slices.Contains(ids, sh.ID) {
				ids = append(ids, sh.ID)
			}
		}
	}
	return ids
}
