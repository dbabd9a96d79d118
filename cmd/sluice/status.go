package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/internal/page"
)

func statusCommand(c *cli) *cobra.Command {
	place := letterPlace{c: c, live: true}
	var held, asJSON bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the running daemon, and why it is not ready",
		Long: `Show the running daemon: why it is not ready, which routes fail, how far behind its
shards are, and which records are parked.`,
		Example: `  sluice status --held
  sluice status --json | jq .reasons`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			path, text := "/api/status", textOf[page.Status]
			if held {
				path, text = "/api/held", textOf[page.HeldItems]
			}
			return place.with(cmd.Context(), false, func(l *lettersOpen) error {
				body, err := l.api.ask(cmd.Context(), "GET", path, nil)
				if err != nil {
					return err
				}
				defer body.Close()
				if asJSON {
					_, err = io.Copy(c.stdout, body)
					return err
				}
				return text(body, c.stdout)
			})
		},
	}
	fs := cmd.Flags()
	fs.BoolVar(&held, "held", false, "show the items that wait, with errors")
	fs.BoolVar(&asJSON, "json", false, "print a JSON object")
	place.addLiveFlags(fs)
	return cmd
}

// textOf prints an answer of the daemon's API as text.
func textOf[T interface{ Text(io.Writer) }](answer io.Reader, out io.Writer) error {
	var v T
	if err := json.NewDecoder(answer).Decode(&v); err != nil {
		return fmt.Errorf("the daemon's answer cannot be read: %w", err)
	}
	var text bytes.Buffer
	v.Text(&text)
	_, err := io.WriteString(out, plainLines(text.String())) // errors of handlers, too
	return err
}
