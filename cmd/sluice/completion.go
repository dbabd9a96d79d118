package main

import (
	"bytes"
	"context"
	_ "embed"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/statestore"
	"github.com/sluicehq/sluice/sources/poller"
)

// ownCompletion says for each shell how it completes from now on, and in every new
// session. The script for bash needs nothing else.
func ownCompletion(completion *cobra.Command) {
	of := map[string][2]string{
		"bash":       {"source <(sluice completion bash)", "echo 'source <(sluice completion bash)' >>~/.bashrc"},
		"zsh":        {"source <(sluice completion zsh)", `sluice completion zsh >"${fpath[1]}/_sluice"`},
		"fish":       {"sluice completion fish | source", "sluice completion fish >~/.config/fish/completions/sluice.fish"},
		"powershell": {"sluice completion powershell | Out-String | Invoke-Expression", "sluice completion powershell >>$PROFILE"},
	}
	var now []string
	for _, shell := range completion.Commands() {
		lines := of[shell.Name()]
		now = append(now, "  "+lines[0])
		shell.Example = "  # In this session\n  " + lines[0] + "\n\n  # In every new one\n  " + lines[1]
	}
	completion.Example = strings.Join(now, "\n")
	bash, _, _ := completion.Find([]string{"bash"}) // cobra has it always
	bash.Long = "Print the script that has bash complete commands of sluice. It needs bash 4 or newer,\nand not the package bash-completion."
	bash.RunE = func(cmd *cobra.Command, _ []string) error {
		bare, err := cmd.Flags().GetBool("no-descriptions")
		if err != nil {
			return err
		}
		var b bytes.Buffer
		if err := cmd.Root().GenBashCompletionV2(&b, !bare); err != nil {
			return err
		}
		script := strings.NewReplacer("_get_comp_words_by_ref", "__sluice_words", "_filedir", "__sluice_files").Replace(b.String())
		_, err = io.WriteString(cmd.OutOrStdout(), script+bashWords)
		return err
	}
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

var completionEnd = time.Second // longest wait of a user at a shell; tests on a busy machine wait longer

const completionHelp = `Print a script with which your shell completes commands, flags and their values: the
routes, tables and queues of the configuration, the ids of dead letters, and the
tables and applications of a stopped daemon's state file.

Each shell has its own script. The help of its command says where to put it.`

// completeRest is for the flags and arguments that no command has spoken for: a
// shell proposes the names that are known, files where one is meant, and else
// nothing.
func (c *cli) completeRest(cmd *cobra.Command) {
	cmd.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	starts := fixed(poller.TrimHorizon, poller.Latest)
	names := map[string]func() []string{
		"from": starts, "latest": starts, "start": starts, "to": fixed(poller.TrimHorizon, poller.Latest, forgotten), "format": fixed(filterFormats...),
		"view": fixed("NEW_AND_OLD_IMAGES", "NEW_IMAGE", "OLD_IMAGE", "KEYS_ONLY"), "handler": fixed(config.InitHandlers...),
		"table": c.ofFile(sourceTables), "route": c.routeNames(), "type": c.ofFile(typeNames),
		"queue": c.ofFile(func(cfg *config.Config) []string { return cfg.Source.Queues }),
		"kind":  fixed("record", "gap"), "dead-letter": fixed("record", "item"),
		"log-format": fixed("text", "json"), "log-level": fixed("debug", "info", "warn", "error"), "opensearch-sign": fixed("es", "aoss"),
	}
	each := func(f *pflag.Flag) {
		_, spoken := cmd.GetFlagCompletionFunc(f.Name)
		value, _ := pflag.UnquoteUsage(f)
		switch {
		case spoken:
		case value == "file":
			_ = cmd.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault))
		case f.Name == "application":
			_ = cmd.RegisterFlagCompletionFunc(f.Name, c.completeApplications)
		case names[f.Name] != nil:
			completeBy(cmd, f.Name, names[f.Name])
		}
	}
	cmd.Flags().VisitAll(each)
	cmd.PersistentFlags().VisitAll(each)
	for _, sub := range cmd.Commands() {
		c.completeRest(sub)
	}
}

func fixed(values ...string) func() []string { return func() []string { return values } }

// ofFile are names that the file has, for a shell; none when it cannot be read.
func (c *cli) ofFile(names func(*config.Config) []string) func() []string {
	return func() (once []string) {
		cfg, err := c.loadMaybe()
		if err != nil || cfg == nil {
			return nil
		}
		for _, name := range names(cfg) {
			if name != "" && !slices.Contains(once, name) {
				once = append(once, name)
			}
		}
		return once
	}
}

func sourceTables(cfg *config.Config) []string { return cfg.Source.Tables }

// typeNames are the entity types that routes of the file name.
func typeNames(cfg *config.Config) (names []string) {
	for _, r := range cfg.Routes {
		names = append(names, r.Types()...)
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "*" })
}

// letterTables are what dead letters say that they are of.
func letterTables(cfg *config.Config) []string {
	return slices.Concat(tablesOf(cfg), mapped(cfg.Source.Queues, path.Base))
}

// counterTables have the counters of the file's routes.
func counterTables(cfg *config.Config) (names []string) {
	for _, r := range cfg.Routes {
		if r.Count != nil {
			for _, n := range r.Count.Numbers {
				names = append(names, n.Table)
			}
		}
	}
	return names
}

// completeApplications proposes those of the state file that the command is about.
func (c *cli) completeApplications(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	var path string
	if f := cmd.Flag("state"); f != nil && f.Changed {
		path = f.Value.String()
	}
	return c.inState(cmd.Context(), path, func(ctx context.Context, store statestore.Store, _ *config.Config) []string {
		apps, _ := store.Applications(ctx)
		return apps
	}), cobra.ShellCompDirectiveNoFileComp
}

// inState finds names in a state file, unless a process holds it.
func (c *cli) inState(ctx context.Context, flag string, find func(context.Context, statestore.Store, *config.Config) []string) []string {
	return soon(ctx, func(ctx context.Context) []string {
		cfg, err := c.loadMaybe()
		if err != nil {
			return nil
		}
		store, err := c.openState(ctx, c.statePath(flag, cfg), cfg, time.Nanosecond)
		if err != nil {
			return nil
		}
		defer func() { _ = store.Close() }()
		return find(ctx, store, cfg)
	})
}

// soon returns what find returns within a second.
func soon[T any](ctx context.Context, find func(context.Context) []T) []T {
	ctx, cancel := context.WithTimeout(ctx, completionEnd)
	defer cancel()
	found := make(chan []T, 1)
	go func() { found <- find(ctx) }() // opening a file does not heed ctx
	select {
	case all := <-found:
		return all
	case <-ctx.Done():
		return nil
	}
}

// bashWords stands in for two functions of the package bash-completion where it
// is not loaded: cobra's script calls them, and a bash without them completes
// nothing.
//
//go:embed completion.bash
var bashWords string
