package main

import (
	"errors"
	"io"
	"net/url"

	"github.com/spf13/cobra"
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
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := place.running(cmd.Context())
			if err != nil {
				return err
			}
			defer l.close() //nolint:errcheck // closes idle connections
			path, q := "/", url.Values{"format": {"text"}}
			if held {
				path = "/lanes"
			}
			if asJSON {
				q.Set("format", "json")
			}
			body, err := l.api.ask(cmd.Context(), "GET", path, q)
			if err != nil {
				return err
			}
			text, err := io.ReadAll(body) // errors of handlers, too
			if _, writeErr := io.WriteString(c.stdout, plainLines(string(text))); err == nil {
				err = writeErr
			}
			return errors.Join(err, body.Close())
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.BoolVar(&held, "held", false, "show the items that wait, with errors")
	fs.BoolVar(&asJSON, "json", false, "print JSON, one object a line")
	place.addLiveFlags(fs)
	return cmd
}
