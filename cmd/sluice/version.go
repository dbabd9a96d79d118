package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/internal/buildversion"
)

// versionInfo is the version as JSON.
type versionInfo struct {
	buildversion.Build
	Go   string `json:"go"`
	OS   string `json:"os"`
	Arch string `json:"arch"`
}

func versionCommand(c *cli) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Long:    "Print the version, Go's and the platform; with --json the commit, too.",
		Example: `  sluice version`,
		RunE: func(*cobra.Command, []string) error {
			info := versionInfo{buildversion.Read(), runtime.Version(), runtime.GOOS, runtime.GOARCH}
			return c.answer(asJSON, info, "sluice %s\n", version())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, one object a line")
	return cmd
}

func version() string {
	return fmt.Sprintf("%s %s %s/%s", buildversion.Get(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
