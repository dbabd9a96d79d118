package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/internal/demo"
)

func demoCommand(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Show Sluice at work, on local servers",
		Long: `Show Sluice at work, on servers that it starts on this machine and stops again: a
change in a table becomes a message, by a daemon and by a Lambda function; calls,
deletions and documents of a search index follow from others. Nothing of AWS is
called.

It is run in a checkout of Sluice's repository, whose examples it builds, and needs
Go, Java and, the first time, Maven and a network.

It exits with 0 when all effects were seen, and with 1 when one was not, or when
something is missing that it needs.`,
		Example: `  git clone https://github.com/sluicehq/sluice && cd sluice
  sluice demo`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := demo.Run(cmd.Context(), c.stdout, c.stderr); err != nil {
				return fmt.Errorf("demo: %w", err)
			}
			return nil
		},
	}
}
