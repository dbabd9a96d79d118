package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/internal/daemon"
)

func gapsCommand(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "gaps",
		Short: "List or acknowledge records that the stream lost",
		Long: `List the records that the stream lost unread, or acknowledge the loss. The daemon is
not ready while a gap is open.

First repair the effects: sluice audit --repair for documents, sluice recount
--repair for counts, sluice backfill for the rest.`,
		Example: "  sluice gaps list\n  sluice gaps acknowledge",
	}
	list := &cobra.Command{
		Use:     "list",
		Short:   "List the open gaps",
		Long:    "List the open gaps of the running daemon.",
		Example: `  sluice gaps list --json | jq '.gaps[].lost'`,
	}
	gapsAsk(c, list, "GET", "/gaps", "")
	acknowledge := &cobra.Command{
		Use:     "acknowledge",
		Short:   "Acknowledge all open gaps",
		Long:    `Acknowledge all open gaps: the daemon becomes ready. This repairs nothing.`,
		Example: `  sluice gaps acknowledge`,
	}
	gapsAsk(c, acknowledge, "POST", "/gaps/acknowledge", "acknowledged: ")
	return commandGroup(cmd, list, acknowledge)
}

// gapsAsk has cmd ask a daemon and print the gaps that it answers with.
func gapsAsk(c *cli, cmd *cobra.Command, method, path, before string) {
	place := letterPlace{c: c, live: true, changes: method != "GET"}
	var asJSON bool
	show := func(l *lettersOpen) error {
		var o daemon.OpenGaps
		if err := l.api.get(cmd.Context(), method, path, nil, &o); err != nil {
			return err
		}
		if asJSON {
			return printJSON(c.stdout, o)
		}
		if len(o.Gaps) == 0 {
			fmt.Fprintln(c.stdout, "no open gaps")
		}
		for _, g := range o.Gaps {
			fmt.Fprintf(c.stdout, "%s%s (found %s)\n", before, plain(g.Lost), g.Found.Local().Format(time.RFC3339))
		}
		if method == "GET" && len(o.Gaps) > 0 {
			how := "write again what the routes made of the lost records, such as by a backfill, then acknowledge:"
			if len(o.Repair) > 0 {
				how = "first repair what the routes made of the lost records, then acknowledge:"
			}
			fmt.Fprintln(c.stdout, how)
			for _, command := range append(o.Repair, "sluice gaps acknowledge") {
				fmt.Fprintln(c.stdout, "  "+command)
			}
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return place.with(cmd.Context(), false, show) }
	fs := cmd.Flags()
	fs.BoolVar(&asJSON, "json", false, "print JSON, one object a line")
	place.addLiveFlags(fs)
}
