package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/statestore"
)

func stateCopyCommand(c *cli) *cobra.Command {
	var from, to, application string
	var dry, asJSON bool
	cmd := &cobra.Command{
		Use:   "copy",
		Short: "Copy the state of a stopped daemon to another place",
		Long: `Copy positions, dead letters and the progress of backfills of a stopped daemon, from a
file to a table or back. The source stays. The command refuses when a worker has a
shard, or when the target has state of the application. Also stop daemons that only
consume queues: nothing shows them.

Run a stopped copy again: until it has ended, no daemon starts on the target. Start none
on the source afterwards: it would repeat the records.`,
		Example: `  sluice state create --state dynamodb:sluice-state
  sluice state copy --from sluice.db --to dynamodb:sluice-state --dry-run
  sluice state copy --from sluice.db --to dynamodb:sluice-state`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case from == "":
				return usage("--from: name the state file, or dynamodb:TABLE, to copy")
			case to == "":
				return usage("--to: name the state file, or dynamodb:TABLE, to copy to")
			case from == to:
				return usage("--from and --to are both %s", from)
			}
			return c.copyState(cmd.Context(), from, to, application, dry, asJSON)
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&from, "from", "", "state `file` of a stopped daemon, or dynamodb:TABLE")
	fs.StringVar(&to, "to", "", "state `file`, which is made if there is none, or dynamodb:TABLE")
	fs.StringVar(&application, "application", "", "`name` of the application ($"+applicationEnv+"; default: the configuration's, or sluice)")
	fs.BoolVar(&dry, "dry-run", false, "count what would be copied")
	fs.BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

func (c *cli) copyState(ctx context.Context, from, to, application string, dry, asJSON bool) (err error) {
	cfg, err := c.loadMaybe()
	if err != nil {
		return err
	}
	source, err := c.openState(ctx, from, cfg, time.Second)
	if err != nil {
		return fmt.Errorf("--from: %w", err)
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	app := c.applicationName(application, cfg)
	switch apps, err := source.Applications(ctx); {
	case err != nil:
		return err
	case !slices.Contains(apps, app):
		return fmt.Errorf("nothing is stored of the application %q; %s", app, applicationsOf(app, apps))
	}
	target, err := c.openTarget(ctx, cfg, to, dry)
	if err != nil {
		return fmt.Errorf("--to: %w", err)
	}
	if target != nil {
		defer func() { err = errors.Join(err, target.Close()) }()
	}
	shown := newCounting(c.stderr, "rows")
	done, err := statestore.Copy(ctx, source, target, app, dry, shown.one)
	shown.end()
	if err != nil {
		return err
	}
	verb := map[bool]string{false: "copied", true: "would copy"}[dry]
	return c.answer(asJSON, done, "%s application %s: %s, %s, %s\n", verb, app, plural(done.Streams, "stream", "streams"),
		plural(done.Shards, "shard", "shards"), plural(done.Letters, "dead letter", "dead letters"))
}

// openTarget opens the target of a copy. It is nil if a dry run would have to make a
// file.
func (c *cli) openTarget(ctx context.Context, cfg *config.Config, to string, dry bool) (statestore.Store, error) {
	if _, ok := statestore.Table(to); ok {
		return c.openState(ctx, to, cfg, 0)
	}
	if _, err := os.Stat(filepath.Dir(to)); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the folder %s of the state file does not exist: correct the path, or make the folder", filepath.Dir(to))
	}
	if _, err := os.Stat(to); dry && errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return statestore.Open(ctx, to, statestore.Options{LockTimeout: time.Second})
}
