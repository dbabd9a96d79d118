package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/holders"
	"github.com/sluicehq/sluice/internal/parallel"
	"github.com/sluicehq/sluice/internal/snapshot"
	"github.com/sluicehq/sluice/internal/statestore"
	"github.com/sluicehq/sluice/sources/poller"
	"github.com/sluicehq/sluice/state"
	"github.com/sluicehq/sluice/state/boltstate"
)

func stateCommand(c *cli) *cobra.Command {
	return commandGroup(&cobra.Command{
		Use:   "state",
		Short: "Show, reset or copy the state of a daemon",
		Long: `Show, reset or copy the state of a daemon: the position of each shard, gaps, backfills
and dead letters. Stop the daemon of a state file first, or use sluice status. A state
table can be shown at any time.`,
		Example: `  sluice state list
  sluice state show orders
  sluice state reset orders --to LATEST
  sluice state create --state dynamodb:sluice-state
  sluice state copy --from sluice.db --to dynamodb:sluice-state`,
	}, stateListCommand(c), stateShowCommand(c), stateResetCommand(c), stateCreateCommand(c), stateCopyCommand(c), stateImportCommand(c))
}

// stateFile is the state that a command is about.
type stateFile struct {
	c                 *cli
	path, application string
	given             func(flag string) bool
}

func (s *stateFile) addFlags(fs *pflag.FlagSet) {
	fs.SortFlags = false
	s.given = fs.Changed
	fs.StringVar(&s.path, "state", "", stateUsage)
	fs.StringVar(&s.application, "application", "", "`name` of the application ($"+applicationEnv+"; default: the configuration's, or sluice)")
}

func (s *stateFile) with(ctx context.Context, do func(store statestore.Store, app string) error) error {
	if s.path == "" && s.given("state") {
		return usage("--state: it is empty: is a variable not set?")
	}
	cfg, err := s.c.loadMaybe()
	if err != nil {
		return err
	}
	store, err := s.c.openState(ctx, s.c.statePath(s.path, cfg), cfg, time.Second)
	if errors.Is(err, boltstate.ErrLocked) {
		return fmt.Errorf("%w. While a daemon runs, sluice status shows how far it is", err)
	}
	if err != nil {
		return err
	}
	return errors.Join(do(store, s.c.applicationName(s.application, cfg)), store.Close())
}

// complete proposes the tables of the file, to a command that takes one.
func (s *stateFile) complete(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return s.c.inState(cmd.Context(), s.path, func(ctx context.Context, store statestore.Store, cfg *config.Config) []string {
		streams, _ := store.Streams(ctx, s.c.applicationName(s.application, cfg))
		tables := mapped(streams, func(st state.Stream) string { return tableName(st.ARN) })
		slices.Sort(tables) // the store has streams by ARN, which begins with the Region
		return slices.Compact(tables)
	}), cobra.ShellCompDirectiveNoFileComp
}

// streamState is the stored state of one stream.
type streamState struct {
	Application string       `json:"application"`
	Table       string       `json:"table"`
	ARN         string       `json:"arn"`
	Start       string       `json:"start,omitempty"` // TRIM_HORIZON or LATEST; empty if none is stored
	StartAt     time.Time    `json:"startAt,omitzero"`
	Shards      []shardState `json:"shards"`
}

type shardState struct {
	ID       string    `json:"id"`
	Parent   string    `json:"parent,omitempty"`
	Position string    `json:"position,omitempty"` // sequence number of the last settled record
	Finished bool      `json:"finished"`
	Owner    string    `json:"owner,omitempty"` // who had it last, and has not released it
	Epoch    uint64    `json:"epoch"`
	Created  time.Time `json:"created,omitzero"` // as its id says

	// Of a state table only.
	OwnerState holders.State `json:"ownerState,omitempty"`
	Claimed    time.Time     `json:"claimed,omitzero"` // since when the owner has it
	Moved      time.Time     `json:"moved,omitzero"`   // when the position of an owned shard changed last
}

func (sh *shardState) settledTo(start string) string {
	switch {
	case sh.Finished: // its number would leave no room to say so
		return "the end"
	case sh.Position == "" && start == "LATEST": // older records are dropped
		return "the start"
	}
	return state.Position{Sequence: sh.Position}.String()
}

// applicationState is the stored state of one application.
type applicationState struct {
	Application string             `json:"application"`
	Unfinished  bool               `json:"unfinishedCopy,omitempty"` // no daemon starts on it
	Streams     []streamState      `json:"streams"`
	Backfills   []snapshot.Stored  `json:"backfills"`
	Gaps        []string           `json:"gaps"`
	DeadLetters []deadletter.Count `json:"deadLetters"`
	Workers     []workerState      `json:"workers,omitempty"` // of a state table
}

func readStreams(ctx context.Context, store statestore.Store, app string) ([]streamState, error) {
	streams, err := store.Streams(ctx, app)
	if err != nil {
		return nil, err
	}
	all := []streamState{}
	for _, st := range streams {
		one := streamState{Application: app, Table: poller.Stream{ARN: st.ARN}.TableName(), ARN: st.ARN}
		start, err := store.Start(ctx, st, state.Start{})
		if err != nil && !errors.Is(err, state.ErrNoStart) {
			return nil, err
		}
		one.Start, one.StartAt = start.Position, start.At
		shards, err := store.Shards(ctx, st)
		if err != nil {
			return nil, err
		}
		one.Shards = mapped(shards, func(sh state.Shard) shardState {
			return shardState{ID: sh.ID, Parent: sh.Parent, Position: sh.Position.Sequence, Finished: sh.Position.Finished,
				Owner: sh.Owner, Epoch: sh.Epoch, Created: shardCreated(sh.ID)}
		})
		all = append(all, one)
	}
	// The store has them by ARN, where orders-2/ stands before orders/.
	slices.SortFunc(all, func(a, b streamState) int {
		return cmp.Or(strings.Compare(a.Table, b.Table), strings.Compare(a.ARN, b.ARN))
	})
	return all, nil
}

// shardCreated is the time in a shard's id: shardId-<milliseconds>-<more>.
func shardCreated(id string) time.Time {
	parts := strings.Split(id, "-")
	if len(parts) < 3 {
		return time.Time{}
	}
	ms, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil || ms <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

func readApplication(ctx context.Context, store statestore.Store, app string) (a applicationState, err error) {
	a = applicationState{Application: app, Gaps: []string{}, Backfills: []snapshot.Stored{}}
	err = statestore.Ready(ctx, store, app)
	if a.Unfinished = errors.Is(err, statestore.ErrUnfinished); err != nil && !a.Unfinished {
		return a, err
	}
	if a.Streams, err = readStreams(ctx, store, app); err != nil {
		return a, err
	}
	workers, err := readWorkers(ctx, store, app)
	if err != nil {
		return a, err
	}
	addHolders(a.Streams, workers)
	a.Workers = mapped(workers, func(w holders.Worker) workerState {
		return workerState{Name: w.Name, State: w.State, Config: w.Config, Ended: w.Ended, Shards: len(w.Shards), Jobs: w.Jobs, Report: w.Report}
	})
	backfills, err := snapshot.List(ctx, store, app)
	if err != nil {
		return a, err
	}
	a.Backfills = append(a.Backfills, backfills...)
	slices.SortStableFunc(a.Backfills, func(a, b snapshot.Stored) int { return strings.Compare(a.TableARN, b.TableARN) })
	box := deadletter.NewBox(store, app)
	gaps, unreadable := box.Gaps(ctx)
	slices.SortStableFunc(gaps, func(a, b sluice.Gap) int { // of a shard they are in the order of its records
		return cmp.Or(strings.Compare(a.Table, b.Table), strings.Compare(a.ShardID, b.ShardID))
	})
	for _, g := range gaps {
		a.Gaps = append(a.Gaps, g.String())
	}
	counts, err := box.Counts(ctx)
	a.DeadLetters = append([]deadletter.Count{}, counts...)
	return a, errors.Join(unreadable, err)
}

func stateListCommand(c *cli) *cobra.Command {
	file := stateFile{c: c}
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List streams, workers, backfills, gaps and dead letters",
		Long: `List streams, backfills, gaps and dead letters, of all applications unless
--application names one. Of a state table also list the workers and their numbers of
shards, silent and fenced ones while they have shards. The command watches heartbeats
for 1 to 4 s.`,
		Example: `  sluice state list --state /var/lib/sluice/state.db --json | jq '.[].streams[].table'`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return file.with(cmd.Context(), func(store statestore.Store, _ string) error {
				apps, err := store.Applications(cmd.Context())
				if err != nil {
					return err
				}
				if wanted := file.application; wanted != "" && len(apps) > 0 && !slices.Contains(apps, wanted) {
					fmt.Fprintf(c.stderr, "nothing is stored of the application %q; %s\n", wanted, applicationsOf(wanted, apps))
				}
				some := len(apps) > 0
				apps = slices.DeleteFunc(apps, func(app string) bool { return file.application != "" && app != file.application })
				all, unreadable := make([]applicationState, len(apps)), make([]error, len(apps))
				// Workers of a table are watched for a while.
				parallel.Do(len(apps), 8, func(i int) { all[i], unreadable[i] = readApplication(cmd.Context(), store, apps[i]) })
				if asJSON {
					err = printJSON(c.stdout, all)
				} else if len(all) > 0 || !some {
					err = c.printStates(all)
				}
				return errors.Join(append(unreadable, err)...)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	file.addFlags(cmd.Flags())
	return cmd
}

func (c *cli) printStates(all []applicationState) error {
	if len(all) == 0 {
		fmt.Fprintln(c.stdout, "nothing is stored")
		return nil
	}
	for _, a := range all {
		fmt.Fprintf(c.stdout, "application %s\n", a.Application)
		if a.Unfinished {
			fmt.Fprintf(c.stdout, "  %v\n", statestore.ErrUnfinished)
		}
		t := &table{heads: []string{"  TABLE", "BEGUN", "SHARDS", "OPEN", "STREAM"}}
		for _, s := range a.Streams {
			open := 0
			for _, sh := range s.Shards {
				if !sh.Finished {
					open++
				}
			}
			t.row("  "+s.Table, begun(s), len(s.Shards), open, s.ARN)
		}
		if err := t.print(c.stdout, c.stderr, "--json has all of it"); err != nil {
			return err
		}
		if err := c.printWorkers(a.Workers); err != nil {
			return err
		}
		for _, b := range a.Backfills {
			when := "begun " + b.Begun.UTC().Format(time.RFC3339)
			if !b.Finished.IsZero() {
				when = "finished " + b.Finished.UTC().Format(time.RFC3339)
			}
			fmt.Fprintf(c.stdout, "  backfill %s of %s: %s, %d of %d segments, %s\n", b.Name, b.TableARN, plural(int(b.Items), "item", "items"), b.Done, b.Segments, when)
		}
		for _, g := range a.Gaps {
			fmt.Fprintf(c.stdout, "  gap: %s\n", g)
		}
		n := 0
		for _, d := range a.DeadLetters {
			if d.Kind != "gap" {
				n += d.N
			}
		}
		fmt.Fprintf(c.stdout, "  %s\n", plural(n, "dead letter", "dead letters"))
	}
	return nil
}

func begun(s streamState) string {
	switch {
	case s.Start == "":
		return "-"
	case s.StartAt.IsZero():
		return s.Start
	}
	return s.Start + " of " + s.StartAt.UTC().Format(time.RFC3339)
}

// endOfShard is what tells the shards of one stream apart, but for their times.
func endOfShard(id string) string {
	if at := strings.LastIndexByte(id, '-'); at >= 0 {
		return "…" + id[at+1:]
	}
	return id
}

func stateShowCommand(c *cli) *cobra.Command {
	file := stateFile{c: c}
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show TABLE|STREAM",
		Short: "Show the shards of a table's streams and their positions",
		Long: `Show the shards of a table's streams, parents before children, and how far each is
settled. Of a state table also show since when the owner has a shard, and how long ago
its position moved. Mark silent and fenced owners.`,
		Example:           `  sluice state show orders`,
		Args:              oneStream,
		ValidArgsFunction: file.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			return file.with(cmd.Context(), func(store statestore.Store, app string) error {
				streams, err := namedStreams(cmd.Context(), store, app, args[0])
				if err != nil {
					return err
				}
				if err := statestore.Ready(cmd.Context(), store, app); err != nil {
					fmt.Fprintf(c.stderr, "warning: %v\n", err)
				}
				workers, err := readWorkers(cmd.Context(), store, app)
				if err != nil {
					return err
				}
				addHolders(streams, workers)
				if asJSON {
					return printJSON(c.stdout, streams)
				}
				_, shared := store.(holders.Fleet)
				for _, s := range streams {
					fmt.Fprintf(c.stdout, "%s, begun at %s\n", s.ARN, begun(s))
					if err := shardTable(s, shared).print(c.stdout, c.stderr, "--json has all of it"); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	file.addFlags(cmd.Flags())
	return cmd
}

var oneStream = exactlyOne("one table, or the ARN of one stream")

// namedStreams are the streams of a table, or the one of an ARN.
func namedStreams(ctx context.Context, store statestore.Store, app, name string) ([]streamState, error) {
	all, err := readStreams(ctx, store, app)
	if err != nil {
		return nil, err
	}
	found := slices.DeleteFunc(slices.Clone(all), func(s streamState) bool { return s.Table != name && s.ARN != name })
	if len(found) > 0 {
		return found, nil
	}
	hint, err := elsewhere(ctx, store, app, name)
	if err != nil {
		return nil, err
	}
	tables := slices.Compact(mapped(all, func(s streamState) string { return s.Table }))
	hint = cmp.Or(hint, didYouMean(name, tables))
	return nil, fmt.Errorf("nothing is stored of %q for the application %q%s", name, app, hint)
}

// elsewhere says which applications have a stream that app does not have, or, if
// nothing is stored of app's streams, which applications there are; "" when neither
// helps.
func elsewhere(ctx context.Context, store statestore.Store, app, name string) (string, error) {
	apps, err := store.Applications(ctx)
	if err != nil {
		return "", err
	}
	var have, others []string
	none := true
	for _, other := range apps {
		streams, err := readStreams(ctx, store, other)
		if err != nil {
			return "", err
		}
		if other == app {
			none = len(streams) == 0
			continue
		}
		others = append(others, other)
		if slices.ContainsFunc(streams, func(s streamState) bool { return s.Table == name || s.ARN == name }) {
			have = append(have, other)
		}
	}
	switch {
	case len(have) == 1:
		return fmt.Sprintf(": the application %s has it: say --application %[1]s", have[0]), nil
	case len(have) > 1:
		return ": several applications have it: say by --application which: " + strings.Join(have, ", "), nil
	case none && len(others) > 0:
		return "; " + applicationsOf(app, others), nil
	}
	return "", nil
}

// applicationsOf lists the applications of a file that lacks the wanted one.
func applicationsOf(wanted string, apps []string) string {
	if near := nearest(wanted, apps); near != "" {
		return fmt.Sprintf("did you mean the application %q?", near)
	}
	return "applications with state: " + strings.Join(apps, ", ")
}
