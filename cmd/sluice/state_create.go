package main

import (
	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/internal/accounts"
	"github.com/sluicehq/sluice/internal/statestore"
	"github.com/sluicehq/sluice/state/dynamostate"
)

func stateCreateCommand(c *cli) *cobra.Command {
	s := stateFile{c: c}
	var o dynamostate.CreateOptions
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Make a state table",
		Long: `Make the DynamoDB table in which daemons keep their state, and wait until it is ready.
An existing state table keeps its tags. Many applications can share one.

The table is billed by request. More: docs/fleet.md. Permissions:
deploy/iam/state-create.json.`,
		Example: `  sluice state create --state dynamodb:sluice-state
  sluice state create --state dynamodb:sluice-state --tag team=orders --point-in-time-recovery`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := c.loadMaybe()
			if err != nil {
				return err
			}
			place := c.statePath(s.path, cfg)
			table, ok := statestore.Table(place)
			switch {
			case !ok:
				return usage("--state: %q is a file: name a table, such as --state dynamodb:sluice-state. sluice run makes a state file by itself", place)
			case table == "":
				return usage("--state: %q names no table: want such as dynamodb:sluice-state", place)
			}
			if err := statestore.CheckTable(table); err != nil {
				return usage("--state: %w", err)
			}
			services, _, err := c.accounts(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			if err := dynamostate.Create(cmd.Context(), services(accounts.State), table, o); err != nil {
				return err
			}
			made := map[string]string{"table": table, "region": services("").Region}
			return c.answer(asJSON, made, "state table %s is ready in %s. It is billed by request: about 1.70 USD a month for each daemon, and up to that for each busy shard. Start a daemon: sluice run --state %s\n", table, made["region"], place)
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&s.path, "state", "", "the table, as dynamodb:`TABLE` ($"+stateEnv+"; default: the configuration's)")
	fs.StringToStringVar(&o.Tags, "tag", nil, "tag of the table, as `name=value`; repeatable (needs dynamodb:TagResource)")
	fs.Lookup("tag").DefValue = "" // not []
	fs.BoolVar(&o.PointInTimeRecovery, "point-in-time-recovery", false, "keep backups of 35 days (needs dynamodb:UpdateContinuousBackups)")
	fs.BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}
