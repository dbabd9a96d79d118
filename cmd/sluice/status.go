package main

import (
	"errors"
	"io"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/internal/access"
)

func statusCommand(c *cli) *cobra.Command {
	place := letterPlace{c: c, live: true}
	var held, link, asJSON bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the running daemon, and why it is not ready",
		Long: `Show the running daemon: why it is not ready, which routes fail, how far behind its
shards are, and which records are parked.

--link prints a link for a browser. Open it and press its button within a minute. It
works once, and gives access for 12 hours.`,
		Example: `  sluice status --held
  sluice status --json | jq .reasons`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if held && link || link && asJSON {
				return usage("--link goes with neither --held nor --json")
			}
			l, err := place.running(cmd.Context())
			if err != nil {
				return err
			}
			defer l.close() //nolint:errcheck // closes idle connections
			if link {
				var made access.Link
				if err := l.api.get(cmd.Context(), "POST", "/session", nil, &made); err != nil {
					return err
				}
				_, err = io.WriteString(c.stdout, strings.TrimSuffix(l.api.base, "/")+made.Path+"\n")
				return err
			}
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
	fs.BoolVar(&link, "link", false, "print a link for a browser")
	fs.BoolVar(&asJSON, "json", false, "print JSON, one object a line")
	place.addLiveFlags(fs)
	return cmd
}
