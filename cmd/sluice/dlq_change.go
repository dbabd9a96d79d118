package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/daemon"
	"github.com/sluicehq/sluice/internal/letters"
)

// chosen are dead letters by their ids, or by a filter. An empty id, such as that
// of a variable which is not set, must not choose all.
func chosen(args []string, filter deadletter.Filter, all bool, verb string) error {
	if err := checkIDs(args); err != nil {
		return err
	}
	switch {
	case len(args) > 0 && (all || !letters.ChoosesAll(filter)):
		return usage("name ids, or choose by filters or --all: not both")
	case len(args) == 0 && letters.ChoosesAll(filter) && !all:
		return usage("say which dead letters are to be %s: ids, filters such as --route, or --all", verb)
	case all && !letters.ChoosesAll(filter):
		return usage("--all and a filter exclude each other")
	}
	return nil
}

func checkIDs(ids []string) error {
	switch i := slices.IndexFunc(ids, func(id string) bool { return strings.Trim(id, ".") == "" || strings.Contains(id, "/") }); {
	case i >= 0 && ids[i] == "":
		return usage("an id is empty: is a variable not set?")
	case i >= 0:
		return usage("%q is no id: sluice dlq list shows them", ids[i])
	}
	return nil
}

func dlqRedriveCommand(c *cli) *cobra.Command {
	place := letterPlace{c: c, changes: true}
	var f filterFlags
	var how deadletter.How
	var asJSON, all bool
	cmd := &cobra.Command{
		Use:   "redrive [ID…]",
		Short: "Run dead letters again",
		Long: `Run dead letters again, by id or by filter, each on the route that it failed on.
Those that succeed are deleted. The others stay, with the new error.

The command refuses a route that does not allow redrives, a letter behind earlier
letters of its item, and unsigned letters of a queue. Compare the item with its effect
before you allow one. Exit code 1 also means that a letter stays.`,
		Example: `  sluice dlq redrive --all --dry-run
  sluice dlq redrive cea09b34 --earlier
  sluice dlq redrive --route mail --allow mail`,
		ValidArgsFunction: place.complete(many),
		RunE: func(cmd *cobra.Command, args []string) error {
			filter, err := f.filter()
			if err == nil {
				err = checkIDs(how.Unsigned)
			}
			if letters.ChoosesAll(filter) && !all { // to name a letter there is to choose it
				named := func(id string) bool { return slices.Contains(args, id) }
				args = slices.Concat(args, slices.DeleteFunc(slices.Clone(how.Unsigned), named))
			}
			if err == nil {
				err = chosen(args, filter, all, "run")
			}
			if err == nil && how.Earlier && len(args) == 0 {
				err = usage("--earlier is for ids: with filters, changes of an item run in their order anyway")
			}
			if err != nil {
				return err
			}
			place.warnOfRoute(cmd.Context(), f.route)
			for _, route := range how.Allow {
				place.warnOfRoute(cmd.Context(), route)
				fmt.Fprintf(c.stderr, "--allow: route %q does not allow redriven records by itself: where a later change of an item was handled since, the old one may undo it\n", route)
			}
			return place.with(cmd.Context(), true, func(l *lettersOpen) error {
				if l.part != "" && !how.Force && !how.DryRun {
					return fmt.Errorf("nothing was run: %s. A later change could run before an earlier one that is not here: try again when the others have ended, or say --force where their order does not matter, as for documents with versions", l.part)
				}
				whole, gone := l.api.there(cmd.Context(), how.Unsigned)
				if gone != nil {
					return fmt.Errorf("--unsigned: %w", gone)
				}
				ids, gone := l.api.there(cmd.Context(), args)
				if len(ids) == 0 && gone != nil { // no ids would be all
					return gone
				}
				lines := json.NewEncoder(c.stdout)
				how.Told = func(o deadletter.Outcome) {
					if asJSON {
						_ = lines.Encode(o)
					} else {
						fmt.Fprintln(c.stdout, outcomeLine(o))
					}
				}
				report, err := redriven(ids, func(id string) (deadletter.Report, error) {
					how := how
					how.Unsigned = whole
					if id != "" && !how.Earlier { // it alone is run
						how.Unsigned = slices.DeleteFunc(slices.Clone(whole), func(one string) bool { return !letters.HasPrefix(one, id) })
					}
					return l.api.redrive(cmd.Context(), id, filter, how)
				})
				err = errors.Join(gone, err)
				if !asJSON {
					fmt.Fprintln(c.stdout, reportLine(report, how.DryRun))
				}
				if ended := cmd.Context().Err(); err != nil && ended != nil {
					return stopped(cmd.Context(), ended, "all were run: the same command goes on")
				}
				if err == nil && report == (deadletter.Report{}) && f.route != "" {
					err = c.noneOfRoute(cmd.Context(), l, f.route)
				}
				if err == nil && report.Failed+report.Waiting > 0 {
					err = fmt.Errorf("%d failed or were refused, %d wait: they are still parked in %s", report.Failed, report.Waiting, l.where)
				}
				return err
			})
		},
	}
	fs := cmd.Flags()
	f.add(fs, "")
	fs.BoolVar(&all, "all", false, "all dead letters except gaps")
	fs.BoolVar(&how.DryRun, "dry-run", false, "change nothing, show what would happen")
	fs.BoolVar(&how.Earlier, "earlier", false, "first run the item's earlier parked changes")
	fs.BoolVar(&how.Force, "force", false, "skip the check for earlier changes")
	fs.StringArrayVar(&how.Allow, "allow", nil, "run letters of this `route` without its redrive; repeatable")
	fs.StringArrayVar(&how.Unsigned, "unsigned", nil, "run this letter without a signature, by `id`; repeatable")
	fs.BoolVar(&asJSON, "json", false, "print JSON, one object a line")
	completeBy(cmd, "allow", c.routeNames())
	_ = cmd.RegisterFlagCompletionFunc("unsigned", place.complete(many))
	place.addFlags(fs)
	return cmd
}

// redriven redrives ids one after the other, or without any what a filter chooses.
func redriven(ids []string, one func(id string) (deadletter.Report, error)) (sum deadletter.Report, err error) {
	if len(ids) == 0 {
		ids = []string{""}
	}
	var errs []error
	for _, id := range ids {
		r, err := one(id)
		errs = append(errs, err)
		sum.Done, sum.Failed, sum.Waiting = sum.Done+r.Done, sum.Failed+r.Failed, sum.Waiting+r.Waiting
		sum.Gaps, sum.WouldRun = sum.Gaps+r.Gaps, sum.WouldRun+r.WouldRun
	}
	return sum, errors.Join(errs...)
}

func outcomeLine(o deadletter.Outcome) string {
	text := fmt.Sprintf("%s: %s", letters.ShortID(o.ID), o.Result)
	if len(o.Routes) > 0 {
		text += " on " + strings.Join(o.Routes, ", ")
	}
	if len(o.Earlier) > 0 && o.Error == "" {
		text += " for " + strings.Join(o.Earlier, ", ")
	}
	for _, more := range []string{o.Error, o.Note} {
		if more != "" {
			text += ": " + cutText(more, 1000)
		}
	}
	switch {
	case o.Result == deadletter.Waiting && o.Error != "":
		text += " (--earlier runs them first, --force runs this one all the same)"
	case o.Result == deadletter.Waiting && o.Note != "": // behind what cannot be read
		text += " (dlq purge deletes it by its id, --force runs this one all the same)"
	}
	return plain(text)
}

func reportLine(r deadletter.Report, dryRun bool) string {
	text := fmt.Sprintf("%d done", r.Done)
	if dryRun {
		text = fmt.Sprintf("%d would run", r.WouldRun)
	}
	text += fmt.Sprintf(", %d failed or refused, %d waiting", r.Failed, r.Waiting)
	return text + more(r.Gaps, "gaps, which have no record to run")
}

func dlqPurgeCommand(c *cli) *cobra.Command {
	place := letterPlace{c: c, changes: true}
	var f filterFlags
	var all, yes, dryRun, asJSON bool
	cmd := &cobra.Command{
		Use:   "purge [ID…]",
		Short: "Delete dead letters",
		Long: `Delete dead letters, by id or by filter. Sluice has no other copy of their records.
Gaps stay, unless you give --kind gap or their ids. Deleting a gap acknowledges it.`,
		Example: `  sluice dlq purge --table orders --error 'no such customer' --dry-run
  sluice dlq purge --since 2h --yes --json | jq .deleted`,
		ValidArgsFunction: place.complete(many),
		RunE: func(cmd *cobra.Command, args []string) error {
			filter, err := f.filter()
			if err == nil {
				err = chosen(args, filter, all, "deleted")
			}
			if err != nil {
				return err
			}
			place.warnOfRoute(cmd.Context(), f.route)
			return place.with(cmd.Context(), false, func(l *lettersOpen) error {
				ctx := cmd.Context()
				purged := daemon.DeadLetterDeletion{DryRun: dryRun} // as a daemon answers
				ids, gone := l.api.there(ctx, args)
				n := len(ids)
				if len(args) == 0 {
					// What is parked between the count and the answer is not meant. A stopped
					// daemon parks nothing.
					if now := time.Now(); l.parks && (filter.Until.IsZero() || filter.Until.After(now)) {
						filter.Until = now
					}
					d, err := l.api.remove(ctx, "", filter, true)
					if err != nil {
						return err
					}
					if n, purged.Unreadable = d.Deleted, d.Unreadable; d.Unreadable != "" {
						fmt.Fprintln(c.stderr, plainLines(d.Unreadable))
					}
					ids = []string{""}
				}
				if n == 0 && !dryRun {
					return errors.Join(gone, c.answer(asJSON, purged, "0 deleted: there is none of them in %s\n", l.where))
				}
				if dryRun {
					purged.Deleted = n
					return errors.Join(gone, c.answer(asJSON, purged, "%d would be deleted from %s\n", n, l.where))
				}
				if err := c.confirm(yes, "delete %s from %s? Their records are lost.", plural(n, "dead letter", "dead letters"), l.where); err != nil {
					return errors.Join(gone, err)
				}
				errs := []error{gone}
				for _, id := range ids {
					d, err := l.api.remove(ctx, id, filter, false)
					purged.Deleted += d.Deleted
					if purged.Unreadable = d.Unreadable; d.Unreadable != "" {
						err = errors.Join(err, errors.New(d.Unreadable))
					}
					errs = append(errs, err)
				}
				return errors.Join(append(errs, c.answer(asJSON, purged, "%d deleted from %s\n", purged.Deleted, l.where))...)
			})
		},
	}
	fs := cmd.Flags()
	f.add(fs, "record")
	fs.BoolVar(&all, "all", false, "all dead letters except gaps")
	fs.BoolVar(&dryRun, "dry-run", false, "change nothing, show what would happen")
	fs.BoolVar(&yes, "yes", false, "do not ask")
	fs.BoolVar(&asJSON, "json", false, "print JSON, one object a line")
	place.addFlags(fs)
	return cmd
}

// confirm asks before something that cannot be undone. Where nobody can answer,
// yes must have been said before.
func (c *cli) confirm(yes bool, format string, args ...any) error {
	if yes {
		return nil
	}
	question := fmt.Sprintf(format, args...)
	if !isTerminal(c.stdin) {
		return usage("%s Say --yes", question)
	}
	fmt.Fprintf(c.stderr, "%s [y/N] ", question)
	answer, _ := bufio.NewReader(c.stdin).ReadString('\n')
	if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
		return errors.New("nothing was changed")
	}
	return nil
}
