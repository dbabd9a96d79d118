package main

import (
	"context"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/daemon"
)

func parkCommand(c *cli) *cobra.Command {
	place := letterPlace{c: c, live: true, changes: true}
	var route string
	var yes, dryRun, asJSON bool
	cmd := &cobra.Command{
		Use:   "park",
		Short: "Park the records that a route fails for",
		Long: `Have the running daemon park, at once, the records whose last call of a route failed.
A record in a call now is parked if that call fails.

If the sink is down, repair it instead. Messages of queues stay, and records refused for
load or to be called later.`,
		Example: `  sluice park --route 'new search' --dry-run
  sluice park --route 'new search' --yes --json | jq .parked`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if route == "" {
				return usage("say by --route which route's records are to be parked")
			}
			return place.with(cmd.Context(), false, func(l *lettersOpen) error {
				return c.park(cmd.Context(), l, route, dryRun, yes, asJSON)
			})
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&route, "route", "", "`name` of the route")
	fs.BoolVar(&dryRun, "dry-run", false, "change nothing, show what would happen")
	fs.BoolVar(&yes, "yes", false, "do not ask")
	fs.BoolVar(&asJSON, "json", false, "print JSON, one object a line")
	place.addLiveFlags(fs)
	return cmd
}

func (c *cli) park(ctx context.Context, l *lettersOpen, route string, dryRun, yes, asJSON bool) error {
	ask := func(dryRun bool) (a daemon.ParkedRoute, err error) {
		q := url.Values{"route": {route}}
		if dryRun {
			q.Set("dryRun", "1")
		}
		err = l.api.get(ctx, "POST", "/park", q, &a)
		return a, err
	}
	a, err := ask(dryRun || !yes)
	if err != nil {
		return err
	}
	if a.State == flow.Outage.String() {
		fmt.Fprintf(c.stderr, "the route %q is in an outage: its records may be good, and succeed when what it calls works again\n", route)
	}
	if a.DryRun = dryRun; !dryRun && !yes && a.Parked+a.Pending > 0 {
		if err := c.confirm(false, "park what the route %q fails for, %s, in %s (state: %s, last error: %s)?",
			route, plural(a.Parked+a.Pending, "record", "records"), l.where, a.State, cutText(a.Error, 200)); err != nil {
			return err
		}
		if a, err = ask(false); err != nil {
			return err
		}
	}
	text := fmt.Sprintf("%s parked by %s\n", plural(a.Parked, "record", "records"), l.where)
	if a.DryRun {
		text = fmt.Sprintf("the route %q fails for %s in %s (state: %s)\n%s would be parked\n",
			route, plural(a.Failing, "item", "items"), l.where, a.State, plural(a.Parked, "record", "records"))
	}
	if a.Pending > 0 {
		text += plural(a.Pending, "record", "records") + " pending, in a call now: parked when the call fails, unless it succeeds\n"
	}
	return c.answer(asJSON, a, "%s", text)
}
