package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/access"
	"github.com/sluicehq/sluice/internal/letterkeys"
	"github.com/sluicehq/sluice/internal/letterqueue"
	"github.com/sluicehq/sluice/internal/letters"
)

// redriveHelp says what flags do not.
const redriveHelp = `Usage:
  %[1]s dlq redrive [--queue NAME] [--all | --route NAME | … | ID…] [flags]

Runs dead letters of this program's Lambda function again: each through the route
that it failed on, and deletes those that succeed. One that fails again stays.
sluice dlq list, show and purge --queue NAME show and delete the letters of a queue.
The letters of a daemon are redriven by sluice dlq redrive, which asks the daemon.

It exits with 0 when all have succeeded, with 1 when one failed, was refused or
waits, and with 2 for wrong usage.

Flags:
%[2]s`

// redriver is the command "dlq redrive" of a program.
type redriver struct {
	App
	queue, keyFile, route, table, since, text string
	all                                       bool
	ids                                       []string
	filter                                    deadletter.Filter
	how                                       deadletter.How
}

func (a App) redrive(ctx context.Context, args []string, env func(string) string, stdout, stderr io.Writer) error {
	if len(args) == 0 || args[0] != "redrive" {
		return &UsageError{fmt.Errorf("this program has one command, dlq redrive: %s dlq redrive --help", a.Name)}
	}
	r := &redriver{App: a}
	fs := pflag.NewFlagSet(a.Name+" dlq redrive", pflag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.SortFlags = false
	fs.StringVar(&r.queue, "queue", "", "SQS `queue` that the function parks in, by name or URL ($"+letterQueueEnv+")")
	fs.StringVar(&r.keyFile, "letter-key-file", "", "`file` of the keys that verify the letters ($"+access.LetterKeyFileEnv+", or the keys themselves in $"+access.LetterKeyEnv+")")
	fs.BoolVar(&r.all, "all", false, "all letters")
	fs.StringVar(&r.route, "route", "", "only letters of the `route`")
	fs.StringVar(&r.table, "table", "", "those of the table or queue of this `name`")
	fs.StringVar(&r.since, "since", "", "parked since then: a `time` such as 2026-01-31T15:04:05Z, or how long ago, such as 30m")
	fs.StringVar(&r.text, "error", "", "with this `text` in their first or last error")
	fs.BoolVar(&r.how.DryRun, "dry-run", false, "change nothing, show what would happen")
	fs.BoolVar(&r.how.Force, "force", false, "run letters although an earlier change of their item is parked")
	fs.StringArrayVar(&r.how.Allow, "allow", nil, "run letters on the route of this `name` although it does not allow redriven records: an old change may undo a later one")
	fs.StringArrayVar(&r.how.Unsigned, "unsigned", nil, "run the letter of this `id` although its signature does not prove who sent it: first look at it")
	switch err := fs.Parse(args[1:]); {
	case errors.Is(err, pflag.ErrHelp):
		fmt.Fprintf(stdout, redriveHelp, a.Name, fs.FlagUsages())
		return nil
	case err != nil:
		return &UsageError{err}
	}
	r.ids = slices.Concat(fs.Args(), r.how.Unsigned)
	if err := r.choose(fs); err != nil {
		return &UsageError{err}
	}
	r.queue = cmp.Or(r.queue, env(letterQueueEnv), a.DeadLetter.Queue)
	if r.queue == "" {
		return &UsageError{fmt.Errorf("no queue is named: give --queue or set %s", letterQueueEnv)}
	}
	return r.run(ctx, env, stdout, stderr)
}

// choose reads which letters are meant. Nothing, or an empty text, must not choose all.
func (r *redriver) choose(fs *pflag.FlagSet) (err error) {
	q := map[string][]string{}
	for _, name := range []string{"route", "table", "since", "error"} {
		if f := fs.Lookup(name); f.Changed {
			q[name] = []string{f.Value.String()}
		}
	}
	if r.filter, err = letters.ParseFilter(q, time.Now()); err != nil {
		return fmt.Errorf("--%w", err)
	}
	ways := 0
	for _, way := range []bool{r.all, !letters.ChoosesAll(r.filter), len(r.ids) > 0} {
		if way {
			ways++
		}
	}
	switch {
	case slices.Contains(r.ids, ""):
		return errors.New("an id is empty: is a variable not set?")
	case fs.Changed("queue") && r.queue == "":
		return errors.New("--queue: it is empty: is a variable not set?")
	case ways != 1:
		return errors.New("say which letters to run: ids, filters such as --route, or --all")
	}
	return nil
}

func (r *redriver) run(ctx context.Context, env func(string) string, stdout, stderr io.Writer) (err error) {
	logger := slog.New(slog.NewTextHandler(stderr, nil))
	aws, _, err := loadAWS(ctx, env, Options{}, logger)
	if err != nil {
		return err
	}
	keys, err := letterkeys.Find(env, cmp.Or(r.keyFile, r.DeadLetter.KeyFile))
	if r.keyFile != "" {
		keys, err = letterkeys.Find(func(string) string { return "" }, r.keyFile)
	}
	if err != nil {
		return err
	}
	o, err := r.optionsFromEnv(env)
	if err != nil {
		return err
	}
	m, err := r.routes(ctx, Setup{Tables: o.tableNames(), Queues: o.Queues, Env: env, Logger: logger, AWS: aws})
	if err != nil {
		return err
	}
	received, err := letterqueue.Receive(ctx, aws("sqs"), r.queue, o.Application, keys, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, received.Close()) }()
	if received.Part != "" && !r.how.Force && !r.how.DryRun {
		return fmt.Errorf("nothing was run: %s. A later change could run before an earlier one that is not here: try again, or say --force where their order does not matter", received.Part)
	}
	box := letters.NewBox(received, o.Application)
	r.how.Fetch = Fetch(aws("dynamodb"))
	var sum deadletter.Report
	r.how.Told = func(o deadletter.Outcome) {
		count(&sum, o)
		text := fmt.Sprintf("%s: %s", letters.ShortID(o.ID), o.Result)
		if len(o.Routes) > 0 {
			text += " on " + strings.Join(o.Routes, ", ")
		}
		for _, more := range []string{o.Error, o.Note} {
			if more != "" {
				text += fmt.Sprintf(": %q", more) // it may hold anything
			}
		}
		fmt.Fprintln(stdout, text)
	}
	err = r.each(ctx, box, OfTables{m, o.tableNames(), o.Queues, func(kind, name string, known []string) error {
		return fmt.Errorf("%s %s is none of this program (%s)", kind, name, strings.Join(known, ", "))
	}})
	if sum.Failed+sum.Waiting > 0 {
		err = errors.Join(err, fmt.Errorf("%d failed or were refused, %d wait: they are still in the queue %s", sum.Failed, sum.Waiting, r.queue))
	}
	fmt.Fprintf(stdout, "%d done, %d failed or refused, %d waiting, %d would run\n", sum.Done, sum.Failed, sum.Waiting, sum.WouldRun)
	return err
}

// each runs the selected letters. The error joins everything not reported yet.
func (r *redriver) each(ctx context.Context, box *letters.Box, m sluice.Matcher) error {
	for i, id := range r.how.Unsigned {
		var err error
		if r.how.Unsigned[i], err = box.Find(ctx, id); err != nil {
			return err
		}
	}
	if len(r.ids) == 0 {
		_, err := box.RedriveAll(ctx, m, r.filter, r.how)
		return err
	}
	var errs []error
	for _, id := range r.ids {
		id, err := box.Find(ctx, id)
		if err == nil {
			_, err = redrive(ctx, box, m, []string{id}, r.filter, r.how)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// OfTables refuses letters of tables and queues that are none of these: another
// program may have a route of the same name. Without any tables or queues it accepts
// all, like a function, which does not configure what it reads.
type OfTables struct {
	sluice.Matcher
	Tables, Queues []string
	Refuse         func(kind, name string, known []string) error
}

// Match implements [sluice.Matcher].
func (m OfTables) Match(dst []*sluice.Route, rec *sluice.Record) ([]*sluice.Route, error) {
	known, kind := m.Tables, "table"
	if rec.EventName == sluice.Delivery {
		known, kind = m.Queues, "queue"
	}
	if rec.Table != "" && len(known) > 0 && !slices.ContainsFunc(known, func(name string) bool { return path.Base(name) == rec.Table }) {
		return dst, sluice.Permanent(m.Refuse(kind, rec.Table, known))
	}
	return m.Matcher.Match(dst, rec)
}
