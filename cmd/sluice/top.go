package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/sluicehq/sluice/internal/backoff"
	"github.com/sluicehq/sluice/internal/page"
)

func topCommand(c *cli) *cobra.Command {
	place := letterPlace{c: c, live: true}
	var every time.Duration
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch the running daemon",
		Long: `Watch the running daemon, until Ctrl-C: the rates of its routes, and what sluice status
shows. In a pipe, print it again and again. With --json, each look is one line.`,
		Example: `  sluice top
  sluice top --every 10s | tee watch.txt
  sluice top --json | jq .reasons`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if every < 100*time.Millisecond {
				return usage("--every is %v: want 100ms or more", every)
			}
			return place.with(cmd.Context(), false, func(l *lettersOpen) error {
				return c.watch(cmd.Context(), every, asJSON, func(ctx context.Context) (st page.Status, err error) {
					err = l.api.get(ctx, "GET", "/api/status", nil, &st)
					return st, err
				})
			})
		},
	}
	fs := cmd.Flags()
	fs.DurationVar(&every, "every", 2*time.Second, "time between two looks")
	fs.BoolVar(&asJSON, "json", false, "print a JSON object")
	place.addLiveFlags(fs)
	return cmd
}

// watch shows the status until ctx ends. A daemon that answers no more, as in a restart,
// is asked again.
func (c *cli) watch(ctx context.Context, every time.Duration, asJSON bool, ask func(context.Context) (page.Status, error)) error {
	for first := true; ; first = false {
		st, err := ask(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && first:
			return err
		}
		if err := c.look(st, err, asJSON); err != nil {
			return err
		}
		if backoff.Sleep(ctx, every) != nil {
			return nil
		}
	}
}

// look shows a status, or why the daemon gave none.
func (c *cli) look(st page.Status, noAnswer error, asJSON bool) error {
	var text bytes.Buffer
	if noAnswer != nil {
		fmt.Fprintf(&text, "%s: no answer: %v\n", time.Now().Format(time.TimeOnly), noAnswer)
	}
	switch {
	case asJSON && noAnswer != nil:
		_, err := io.WriteString(c.stderr, plainLines(text.String()))
		return err
	case asJSON:
		return printLine(c.stdout, st)
	case noAnswer == nil:
		st.Rates(&text)
		fmt.Fprintln(&text)
		st.Text(&text)
	}
	return c.redraw(plainLines(text.String()))
}

// redraw shows a text in the place of the one before, as far as it fits on the terminal.
// Without a terminal it appends the text.
func (c *cli) redraw(text string) error {
	terminal, ok := c.stdout.(*onFile)
	if !ok {
		_, err := io.WriteString(c.stdout, text+"\n")
		return err
	}
	width, height, err := term.GetSize(int(terminal.Fd()))
	if err != nil {
		return err
	}
	_, err = io.WriteString(terminal.file, frame(text, width, height))
	return err
}

// Sequences of every terminal: ECMA-48.
const (
	home     = "\x1b[H"
	clearRow = "\x1b[K" // to its end
	clearAll = "\x1b[J" // below
)

// frame is a text that fills a terminal.
func frame(text string, width, height int) string {
	var b strings.Builder
	b.WriteString(home)
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, line := range lines[:min(len(lines), max(height-1, 1))] {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(cutColumns(line, width))
		b.WriteString(clearRow)
	}
	b.WriteString(clearAll + "\r\n")
	return b.String()
}
