package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/internal/buildversion"
)

func versionCommand(c *cli) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Long:    "Print the version of this program, of Go, and the platform of the build.",
		Example: `  sluice version`,
		Args:    noArguments,
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return printJSON(c.stdout, map[string]string{"version": buildversion.Get(), "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH})
			}
			_, err := fmt.Fprintln(c.stdout, "sluice", version())
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, one object a line")
	return cmd
}

func version() string {
	return fmt.Sprintf("%s %s %s/%s", buildversion.Get(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
