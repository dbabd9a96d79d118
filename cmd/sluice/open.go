package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/cli/browser"
	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/internal/access"
)

func openCommand(c *cli) *cobra.Command {
	place := letterPlace{c: c, live: true}
	var address string
	var printed bool
	cmd := &cobra.Command{
		Use:   "open",
		Short: "Open the running daemon's page in a browser",
		Long: `Open the running daemon's page in a browser. Press the button of the page within a
minute. The link works once, and gives access for 12 hours.

Without a browser, or with --print, the command prints the link. --address is the URL
of the daemon for the browser, such as that of kubectl port-forward.`,
		Example: `  sluice open
  kubectl port-forward sluice-0 8080:9464
  kubectl exec sluice-0 -- sluice open --print --address http://127.0.0.1:8080`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return place.with(cmd.Context(), false, func(l *lettersOpen) error {
				base := l.api.base
				if address != "" {
					u, err := addressURL("--address", address)
					if err != nil {
						return err
					}
					base = u.String()
				}
				var made access.Link
				if err := l.api.get(cmd.Context(), "POST", "/session", nil, &made); err != nil {
					return err
				}
				link := strings.TrimSuffix(base, "/") + made.Path
				if !printed {
					err := c.openLink(link)
					if err == nil {
						fmt.Fprintln(c.stderr, "opened in a browser; if it shows nothing: sluice open --print")
						return nil
					}
					fmt.Fprintf(c.stderr, "no browser could be opened: %v; open this link within a minute:\n", err)
				}
				_, err := fmt.Fprintln(c.stdout, plain(link))
				return err
			})
		},
	}
	fs := cmd.Flags()
	fs.BoolVar(&printed, "print", false, "print the link")
	fs.StringVar(&address, "address", "", "`URL` of the daemon for the browser (default: the address that the command asks)")
	place.addLiveFlags(fs)
	return cmd
}

// openLink opens a link by a file that only this user can read: every user of the
// machine can read the arguments of a browser, and who uses the link first is let in.
func (c *cli) openLink(link string) error {
	dir, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "sluice", "open.html") // one for all links: each is of use for a minute
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	if err := access.Store(file, access.LinkFile(link)); err != nil {
		return err
	}
	return c.browse(file)
}

// browse shows a file in a browser. It drops what the launcher prints, such as each
// browser that is not installed.
func browse(file string) error {
	browser.Stdout, browser.Stderr = nil, nil // no pipes: a browser that stays would hold them, and so the command
	return browser.OpenFile(file)
}
