package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/daemon"
	"github.com/sluicehq/sluice/internal/replay"
	"github.com/sluicehq/sluice/internal/reread"
)

func replayCommand(c *cli) *cobra.Command {
	r := replaying{c: c}
	cmd := &cobra.Command{
		Use:   "replay FILE…|-",
		Short: "Run records of files through the routes",
		Long: `Run the records of files, or of standard input, through the routes. A file may mix
records (NDJSON or arrays), events of Lambda, its on-failure records (SQS, SNS, S3), and
dead letters. A letter runs on the route that it failed on.

Records of one item run in order. Unreadable input, and a record that fails --attempts
times, go to the file --failed for another replay. A stopped replay prints the --offset
to go on.`,
		Example: `  sluice replay records.ndjson --dry-run
  aws sqs receive-message --queue-url "$URL" --max-number-of-messages 10 | sluice replay -`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return usage("no file is named; - is standard input")
			case len(args) > 1 && r.offset > 0:
				return usage("--offset is one in one file: name the one")
			case len(args) > 1 && slices.Contains(args, stdinName):
				return usage("- stands alone")
			}
			return nil
		},
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
		RunE:              func(cmd *cobra.Command, args []string) error { return r.run(cmd.Context(), args) },
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.BoolVar(&r.dryRun, "dry-run", false, "change nothing, show what would happen")
	fs.StringVar(&r.route, "route", "", "only run this `route`")
	fs.StringVar(&r.failed, "failed", "replay-failed.ndjson", "`file` for what fails")
	fs.IntVar(&r.attempts, "attempts", 5, "`times` to try a record")
	fs.Int64Var(&r.offset, "offset", 0, "go on at this `byte`")
	fs.BoolVar(&r.asJSON, "json", false, "print JSON, one object a line")
	return cmd
}

// replaying is one call of the command.
type replaying struct {
	c                *cli
	dryRun, asJSON   bool
	route, failed    string
	attempts         int
	offset           int64
	keep             *failedFile
	items            replay.Items // of all files
	app              *config.App
	routes           sluice.Matcher
	fetch            deadletter.Fetch
	parkedOrBad, bad int

	telling sync.Mutex
}

// replayed is what --json prints of a file.
type replayed struct {
	File string `json:"file"`
	replay.Progress
	Failed string `json:"failed,omitempty"` // the file of what failed
	Error  string `json:"error,omitempty"`
}

func (r *replaying) run(ctx context.Context, files []string) error {
	if r.attempts < 1 {
		return usage("--attempts: %d is not 1 or more", r.attempts)
	}
	if r.offset < 0 {
		return usage("--offset: %d is below 0", r.offset)
	}
	for _, name := range files { // before what hides it, and before others run
		if _, err := os.Stat(name); name != stdinName && err != nil {
			return err
		}
	}
	_, app, err := r.c.loadApp(ctx, config.Setup{})
	if err != nil {
		return err
	}
	if err := knownRoute(app, r.route); err != nil {
		return err
	}
	r.app, r.routes, r.fetch = app, app.Router, daemon.Fetch(app.AWS("dynamodb"))
	r.keep = &failedFile{path: r.failed}
	if !r.dryRun {
		if err := r.keep.check(files); err != nil {
			return err
		}
	}
	for _, name := range files {
		if err := r.file(ctx, name); err != nil {
			return errors.Join(err, r.keep.Close())
		}
	}
	if err := r.keep.Close(); err != nil {
		return err
	}
	switch {
	case r.dryRun && r.bad > 0:
		return fmt.Errorf("%d cannot be read or run", r.bad)
	case r.parkedOrBad > 0:
		return fmt.Errorf("%d failed, %d cannot be read: they are in %s; once what was wrong is mended: sluice replay %[3]s --failed OTHER", r.parkedOrBad-r.bad, r.bad, r.failed)
	}
	return nil
}

func (r *replaying) file(ctx context.Context, name string) error {
	in, err := r.c.input(name)
	if err != nil {
		return err
	}
	defer in.Close()
	o := r.options(name)
	p, err := replay.Run(ctx, r.routes, in, o)
	r.parkedOrBad += p.Parked + p.Bad
	r.bad += p.Bad
	done := replayed{File: name, Progress: p, Error: errorText(err)}
	if p.Parked+p.Bad > 0 && !r.dryRun {
		done.Failed = r.failed
	}
	switch {
	case r.dryRun:
	case r.asJSON:
		_ = json.NewEncoder(r.c.stdout).Encode(done)
	default:
		fmt.Fprintf(r.c.stdout, "%s: %s\n", name, progressLine(p))
	}
	if errors.Is(err, replay.ErrStopped) && name != stdinName {
		return fmt.Errorf("%s: %w: go on by --offset %d, which may repeat some", name, err, p.Offset)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func progressLine(p replay.Progress) string {
	return fmt.Sprintf("%s, %d handled, %d skipped, %d without a route, %d failed, %s that cannot be read, up to byte %d",
		plural(p.Records, "record", "records"), p.Done, p.Skipped, p.Unrouted, p.Parked, plural(p.Bad, "value", "values"), p.Offset)
}

func (r *replaying) options(name string) replay.Options {
	keep := func(_ context.Context, _ deadletter.Entry, data []byte) error { return r.keep.write(data) }
	o := replay.Options{
		Offset: r.offset, Route: r.route, Attempts: r.attempts, Items: &r.items,
		Flow: flow.Options{DeadLetter: deadletter.Sender(keep), Logger: r.c.logger()},
		Bad: func(b replay.Bad) error {
			fmt.Fprintf(r.c.stderr, "%s:%d: %s\n", name, b.Line, plain(b.Err.Error()))
			if r.dryRun {
				return nil
			}
			return r.keep.write(b.Text)
		},
		Letter: r.letter,
		Reread: reread.New(r.app.AWS("dynamodb")).Records,
	}
	if r.dryRun {
		o.Tell, o.Flow.Order, o.Flow.Concurrency = r.tell, flow.ByShard, 1 // so that reports are in order
	} else if !r.asJSON {
		told := time.Now()
		o.Progress = func(p replay.Progress) {
			switch {
			case isTerminal(r.c.stderr):
				fmt.Fprintf(r.c.stderr, "\r\x1b[K%d records, %d failed, %d cannot be read", p.Records, p.Parked, p.Bad)
			case time.Since(told) >= lineEvery:
				told = time.Now()
				fmt.Fprintf(r.c.stderr, "%s: %s\n", name, progressLine(p))
			}
		}
	}
	return o
}

// letter reads a dead letter, or a line of a dead-letter file.
func (r *replaying) letter(data []byte) (l replay.Letter, ok bool, err error) {
	var head struct {
		Application string
		Letter      json.RawMessage
		Base64      []byte `json:"letterBase64"`
		Deleted     bool
		Version     int
		ParkedAt    json.RawMessage
	}
	if data[0] != '{' || json.Unmarshal(data, &head) != nil {
		return l, false, nil
	}
	switch {
	case head.Application != "" && head.Deleted:
		return l, false, errors.New("it is a dead-letter file that a program has changed: redrive it by sluice dlq redrive --file")
	case head.Application != "" && head.Letter != nil:
		data = head.Letter
	case head.Application != "" && head.Base64 != nil:
		data = head.Base64
	case head.Version == 0 || head.ParkedAt == nil:
		return l, false, nil
	}
	e, err := deadletter.Parse(data)
	if err != nil {
		return l, false, err
	}
	rec := e.Record()
	switch {
	case e.Gap != nil:
		return l, false, fmt.Errorf("it is a gap, and has no record: %v", e.Gap)
	case e.Ref != nil:
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if rec, err = r.fetch(ctx, &e); err != nil {
			return l, false, fmt.Errorf("its record was too large to be kept, and cannot be read again: %w", err)
		}
		if e.Route == "" && e.Stands(rec) { // else it were done where nothing ran
			rec.Origin = sluice.Redriven
			if routes, err := r.routes.Match(nil, rec); err == nil && len(routes) == 0 {
				return l, false, errors.New("its record was too large to be kept, and the stream has forgotten it; no route takes the item, a SNAPSHOT record, in its place")
			}
		}
	}
	return replay.Letter{Record: rec, Route: e.Route}, true, nil
}

// told is the output of --dry-run for a record.
type told struct {
	Table    string          `json:"table"`
	Event    string          `json:"event"`
	Keys     json.RawMessage `json:"keys,omitempty"`
	Sequence string          `json:"sequence,omitempty"`
	Routes   []string        `json:"routes"`
	Error    string          `json:"error,omitempty"`
}

// tell prints which routes a record would take.
func (r *replaying) tell(rec *sluice.Record, routes []*sluice.Route, err error) {
	r.telling.Lock()
	defer r.telling.Unlock()
	line := told{Table: rec.Table, Event: string(rec.EventName), Sequence: string(rec.Sequence)}
	line.Routes = mapped(routes, func(rt *sluice.Route) string { return rt.Name })
	if rec.Keys.Exists() {
		line.Keys = rec.Keys.AppendJSON(nil)
	}
	text := strings.Join(line.Routes, ", ")
	switch {
	case err != nil:
		line.Error, text = err.Error(), err.Error()
		r.bad++
	case text == "":
		text = "no route"
	}
	if r.asJSON {
		_ = json.NewEncoder(r.c.stdout).Encode(line)
		return
	}
	fmt.Fprintf(r.c.stdout, "%s %s %s: %s\n", plain(line.Table), plain(line.Event), singleLine(string(line.Keys)), plain(text))
}

// failedFile keeps what failed, a line each. It is made with the first.
type failedFile struct {
	path string

	mu   sync.Mutex
	file keptFile // an *os.File
	size int64    // up to the last whole line
	torn bool     // half a line is behind it
}

type keptFile interface {
	io.WriteCloser
	Sync() error
	Truncate(size int64) error
}

// check refuses a file that something would be lost of.
func (f *failedFile) check(inputs []string) error {
	if f.path == "" {
		return usage("--failed: it is empty: name a file for what fails")
	}
	info, err := os.Stat(f.path)
	if errors.Is(err, os.ErrNotExist) {
		// Told now: what fails would wait for its folder.
		if _, err := os.Stat(filepath.Dir(f.path)); err != nil {
			return fmt.Errorf("--failed: %w", err)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("--failed: %w", err)
	}
	for _, name := range inputs {
		if in, err := os.Stat(name); err == nil && os.SameFile(in, info) {
			return usage("--failed: %s is what is replayed: name another file", f.path)
		}
	}
	if info.Mode().IsRegular() && info.Size() > 0 {
		return usage("--failed: %s is there and holds something: replay it, move it away, or name another file", f.path)
	}
	return nil
}

func (f *failedFile) write(line []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil {
		file, err := os.OpenFile(f.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			return fmt.Errorf("--failed: %w", err)
		}
		f.file = file
	}
	text := append(bytes.Clone(line), '\n')
	if f.torn {
		text = append([]byte{'\n'}, text...)
	}
	_, err := f.file.Write(text)
	if err == nil {
		err = f.file.Sync() // kept records count as done
	}
	if err != nil {
		// It is tried again: half a line must not stand before it.
		f.torn = f.file.Truncate(f.size) != nil
		return fmt.Errorf("--failed: %w", err)
	}
	f.torn = false
	f.size += int64(len(text))
	return nil
}

// Close closes the file, if there is one.
func (f *failedFile) Close() error {
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}
