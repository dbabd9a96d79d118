package main

import "github.com/spf13/cobra"

// complete proposes fixed values for a flag.
func complete(cmd *cobra.Command, flag string, values ...string) {
	completeBy(cmd, flag, func() []string { return values })
}

// completeBy proposes values for a flag that are found when the user asks.
func completeBy(cmd *cobra.Command, flag string, values func() []string) {
	err := cmd.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return values(), cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil {
		panic(err) // no such flag
	}
}

// tableNames are the tables of the file, for a shell; none when it cannot be
// read.
func (c *cli) tableNames() []string {
	cfg, err := c.loadMaybe()
	if err != nil || cfg == nil {
		return nil
	}
	return cfg.Source.Tables
}
