package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/internal/config"
)

// shellExamples says for each shell how it completes from now on, and in every new
// session.
func shellExamples(completion *cobra.Command) {
	of := map[string][2]string{
		"bash":       {"source <(sluice completion bash)", "echo 'source <(sluice completion bash)' >>~/.bashrc"},
		"zsh":        {"source <(sluice completion zsh)", `sluice completion zsh >"${fpath[1]}/_sluice"`},
		"fish":       {"sluice completion fish | source", "sluice completion fish >~/.config/fish/completions/sluice.fish"},
		"powershell": {"sluice completion powershell | Out-String | Invoke-Expression", "sluice completion powershell >>$PROFILE"},
	}
	var now []string
	for _, shell := range completion.Commands() {
		lines := of[shell.Name()]
		if lines[0] == "" {
			continue
		}
		now = append(now, "  "+lines[0])
		shell.Example = "  # In this session\n  " + lines[0] + "\n\n  # In every new one\n  " + lines[1]
	}
	completion.Example = strings.Join(now, "\n")
}

// complete proposes fixed values for a flag.
func complete(cmd *cobra.Command, flag string, values ...string) {
	completeBy(cmd, flag, fixed(values...))
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

// routeNames are the routes of the file that are of one of the kinds, or of any,
// for a shell.
func (c *cli) routeNames(kinds ...string) func() []string {
	return c.ofFile(func(cfg *config.Config) (names []string) {
		for _, r := range cfg.Routes {
			if len(kinds) == 0 || slices.Contains(kinds, r.Kind()) {
				names = append(names, r.Name)
			}
		}
		return names
	})
}
