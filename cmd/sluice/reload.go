package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/internal/page"
)

func reloadCommand(c *cli) *cobra.Command {
	place := letterPlace{c: c, live: true}
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "reload",
		Short: "Reload the running daemon's configuration",
		Long: `Have the running daemon read its configuration again, as at SIGHUP, and wait for the new
routes. If the file is invalid, nothing changes and the exit code is 1.`,
		Example: `  sluice reload`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := place.reload(cmd.Context())
			if err != nil {
				return err
			}
			text := "reloaded: configuration " + plain(r.Config)
			if r.Outcome == page.Unchanged {
				text = "the configuration has not changed: nothing is reloaded"
			}
			return c.answer(asJSON, r, "%s\n", text)
		},
	}
	fs := cmd.Flags()
	fs.BoolVar(&asJSON, "json", false, "print a JSON object")
	place.addLiveFlags(fs)
	return cmd
}

// reload asks the daemon. An invalid file may hide where that is: then the daemon is
// looked for without it, so that its log and its page tell, too.
func (p *letterPlace) reload(ctx context.Context) (r page.Reload, err error) {
	_, invalid := p.c.loadMaybe()
	var l *lettersOpen
	if invalid == nil {
		l, err = p.open(ctx, false)
	} else {
		l, _, err = p.reach(ctx, nil, time.Second)
	}
	if err != nil {
		if invalid != nil && p.daemon == "" {
			err = invalid
		}
		return r, err
	}
	defer l.close() //nolint:errcheck // closes idle connections
	err = l.api.get(ctx, "POST", "/reload", nil, &r)
	if err == nil && invalid != nil && p.daemon == "" { // a daemon of another file
		err = invalid
	}
	return r, err
}
