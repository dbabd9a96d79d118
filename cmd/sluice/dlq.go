package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/letters"
)

func dlqCommand(c *cli) *cobra.Command {
	cmd := commandGroup(&cobra.Command{
		Use:   "dlq",
		Short: "List, run again and delete dead letters",
		Long: `List the records that failed for good, run them again, or delete them.

The command asks the running daemon on this machine; --state, --file and --queue name
other places. You can shorten an id. More: docs/dead-letters.md.`,
		Example: `  sluice dlq list
  sluice dlq show ID --payload
  sluice dlq redrive --route 'new search' --dry-run
  sluice dlq purge --queue failed --table orders --since 2h`,
	}, dlqListCommand(c), dlqShowCommand(c), dlqRedriveCommand(c), dlqPurgeCommand(c))
	for _, sub := range cmd.Commands() {
		completeBy(sub, "queue", c.ofFile(func(cfg *config.Config) []string { return []string{cfg.DeadLetter.Queue} }))
		if sub.Flags().Lookup("table") != nil {
			completeBy(sub, "table", c.ofFile(letterTables))
		}
	}
	return cmd
}

// filterFlags choose dead letters.
type filterFlags struct {
	flags *pflag.FlagSet // that have these
	route string
	key   []string
}

func (f *filterFlags) add(fs *pflag.FlagSet, kinds string) {
	f.flags = fs
	fs.StringVar(&f.route, "route", "", "only this `route`")
	fs.String("table", "", "only this `table` or queue")
	fs.StringArrayVar(&f.key, "key", nil, "only this item: `attribute=value`; repeat it for the sort key")
	fs.String("since", "", "parked since this `time`: 2026-01-31T15:04:05Z, or 30m (ago)")
	fs.String("until", "", "parked before this `time`")
	fs.String("error", "", "only this `text` in the first or last error")
	if kinds != "" {
		fs.String("kind", "", "only record or only gap (default "+kinds+")")
	}
}

func (f *filterFlags) filter() (deadletter.Filter, error) {
	q := url.Values{"key": f.key}
	for _, name := range []string{"kind", "route", "table", "since", "until", "error"} {
		if f.flags.Changed(name) {
			q.Set(name, f.flags.Lookup(name).Value.String())
		}
	}
	filter, err := letters.ParseFilter(q, time.Now())
	if err != nil {
		return filter, usage("--%w", err)
	}
	return filter, nil
}

func dlqListCommand(c *cli) *cobra.Command {
	place := letterPlace{c: c}
	var f filterFlags
	var asJSON, count bool
	var after string
	var limit int
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List dead letters",
		Long:  "List dead letters in the order of their changes: key, route, time and error.",
		Example: `  sluice dlq list --count
  sluice dlq list --table orders --key pk=o-1 --key sk=7
  sluice dlq list --since 2h --error 'mapper_parsing' --json | jq -r '.deadLetters[].id'`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			filter, err := f.filter()
			if err != nil {
				return err
			}
			if limit < 1 {
				return usage("--limit: %d is not 1 or more", limit)
			}
			if count && !letters.ChoosesAll(filter) {
				return usage("--count counts all, by table and route: leave the filters out")
			}
			place.warnOfRoute(cmd.Context(), f.route)
			return place.with(cmd.Context(), false, func(l *lettersOpen) error {
				if count {
					return c.printCounts(cmd.Context(), l, asJSON)
				}
				// A whole id, as a continued list prints it, may be of a
				// deleted letter.
				if !strings.Contains(after, "-") && after != "" {
					o, err := l.api.show(cmd.Context(), after, false)
					if err != nil {
						return fmt.Errorf("--after: %w", err)
					}
					after = o.ID
				}
				page, err := l.api.list(cmd.Context(), filter, after, limit)
				if err != nil {
					return err
				}
				switch {
				case asJSON:
					err = printJSON(c.stdout, page)
				case len(page.DeadLetters) == 0:
					matching := ""
					if !letters.ChoosesAll(filter) || after != "" {
						matching = "matching "
					}
					fmt.Fprintf(c.stdout, "no %sdead letters of the application %q in %s\n", matching, l.api.of, l.where)
				default:
					err = c.printLetters(page.DeadLetters, page.Next, l.where)
				}
				if page.Unreadable != "" {
					return errors.Join(err, errors.New(page.Unreadable))
				}
				return err
			})
		},
	}
	fs := cmd.Flags()
	f.add(fs, "both")
	fs.IntVar(&limit, "limit", 100, "list at most this `number`")
	fs.StringVar(&after, "after", "", "go on after the letter of this `id`")
	_ = cmd.RegisterFlagCompletionFunc("after", place.complete(many))
	fs.BoolVar(&count, "count", false, "count by table and route")
	fs.BoolVar(&asJSON, "json", false, "print JSON, one object a line")
	place.addFlags(fs)
	return cmd
}

// with opens the place for a command.
func (p *letterPlace) with(ctx context.Context, redriving bool, do func(*lettersOpen) error) error {
	l, err := p.open(ctx, redriving)
	if err != nil {
		return err
	}
	return errors.Join(do(l), l.close())
}

func (c *cli) printCounts(ctx context.Context, l *lettersOpen, asJSON bool) error {
	counts, err := l.api.counts(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		err = printJSON(c.stdout, counts)
	} else {
		t := &table{heads: []string{"TABLE", "ROUTE", "KIND", "COUNT"}}
		n := 0
		for _, one := range counts.Counts {
			t.row(one.Table, routeName(one.Route, one.Kind), one.Kind, one.N)
			n += one.N
		}
		err = t.print(c.stdout, c.stderr, "--json has all of it")
		fmt.Fprintf(c.stdout, "%d in all in %s\n", n, l.where)
	}
	if counts.Unreadable != "" {
		return errors.Join(err, errors.New(counts.Unreadable))
	}
	return err
}

func routeName(route, kind string) string {
	switch {
	case kind == "gap":
		return "-"
	case route == "":
		return "(all)"
	}
	return route
}

func (c *cli) printLetters(all []letters.Outline, next, where string) error {
	t := &table{heads: []string{"ID", "TABLE", "ROUTE", "EVENT", "KEY", "PARKED", "CALLS", "ERROR"}, whole: []string{"ID", "EVENT", "PARKED"}}
	ids := shortIDs(all)
	for i, o := range all {
		event, key := o.EventName, string(o.Keys)
		switch {
		case o.Kind == "gap":
			event, key = "gap", "-"
		case o.Kind == "reference":
			event += " (reference)"
		}
		if o.Unverified != "" {
			event += " (unsigned)"
		}
		parked := "-"
		if !o.ParkedAt.IsZero() {
			parked = o.ParkedAt.UTC().Format("2006-01-02T15:04Z")
		}
		t.row(ids[i], o.Table, routeName(o.Route, o.Kind), event, key, parked, o.Attempts, o.Last.Error)
	}
	if err := t.print(c.stdout, c.stderr, "sluice dlq show ID, or --json, has all of it"); err != nil {
		return err
	}
	fmt.Fprintf(c.stdout, "%s in %s\n", plural(len(all), "dead letter", "dead letters"), where)
	if next != "" {
		fmt.Fprintf(c.stdout, "there are more: --after %s\n", plain(next))
	}
	return nil
}

// shortIDs are the shortest ids that tell letters apart from each other.
func shortIDs(all []letters.Outline) []string {
	ids := make([]string, len(all))
	seen := make(map[string]int)
	for i, o := range all {
		ids[i] = letters.ShortID(o.ID)
		seen[ids[i]]++
	}
	for i, o := range all {
		if seen[ids[i]] > 1 {
			ids[i] = o.ID
		}
	}
	return ids
}
