package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write docs/cli.md")

// docs/cli.md says what the commands say.
func TestReference(t *testing.T) {
	const file = "../../docs/cli.md"
	c := &cli{lookup: func(string) (string, bool) { return "", false }, stdout: io.Discard, stderr: io.Discard}
	want := reference(c.root())
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != want {
		t.Errorf("docs/cli.md is not what the commands' help makes of it: go generate ./cmd/sluice")
	}
}

// Every command that does something has a description and an example, and those
// that print data do so for machines, too.
func TestCommandsAreDescribed(t *testing.T) {
	c := &cli{lookup: func(string) (string, bool) { return "", false }, stdout: io.Discard, stderr: io.Discard}
	noJSON := map[string]bool{ // what they print is a file, a script or a log, or JSON anyway
		"sluice init": true, "sluice run": true, "sluice lambda filters": true, "sluice help": true,
		"sluice completion bash": true, "sluice completion zsh": true, "sluice completion fish": true, "sluice completion powershell": true,
	}
	each(c.root(), func(cmd *cobra.Command) {
		if cmd.Short == "" || cmd.Long == "" && cmd.Parent().Long == "" {
			t.Errorf("%s has no description", cmd.CommandPath())
		}
		if cmd.Example == "" {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
		if json := cmd.Flag("json") != nil; !cmd.HasSubCommands() && json == noJSON[cmd.CommandPath()] {
			t.Errorf("%s: --json is %v", cmd.CommandPath(), json)
		}
	})
}

// reference is docs/cli.md.
func reference(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString("# The command line\n\n" +
		"<!-- Made of the commands' own help by go generate ./cmd/sluice: change it there. -->\n\n")
	b.WriteString(prose(root.Long) + "\n\n```sh\n" + example(root) + "```\n\n")
	b.WriteString("| command | what it does |\n|---|---|\n")
	eachOfOurs(root, func(cmd *cobra.Command) {
		fmt.Fprintf(&b, "| [%s](#%s) | %s |\n", cmd.CommandPath(), strings.ReplaceAll(cmd.CommandPath(), " ", "-"), escape(cmd.Short))
	})
	shared := sharedFlags(root)
	fmt.Fprintf(&b, "\n## Common flags\n\nSeveral commands take these flags; `--help` lists them for each.\n\n```text\n%s```\n", shared.FlagUsages())
	eachOfOurs(root, func(cmd *cobra.Command) {
		long := cmd.Long
		if long == "" {
			long = cmd.Short + "."
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", cmd.CommandPath(), prose(long))
		if !cmd.HasSubCommands() {
			fmt.Fprintf(&b, "\n```text\n%s\n", cmd.UseLine())
			own, common := pflag.NewFlagSet("", pflag.ContinueOnError), ""
			cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
				if s := shared.Lookup(f.Name); s != nil && sameFlag(s, f) {
					common += " --" + f.Name
				} else {
					own.AddFlag(f)
				}
			})
			if own.HasAvailableFlags() {
				b.WriteString("\n" + own.FlagUsages())
			}
			if common != "" {
				b.WriteString("\ncommon flags:" + common + "\n")
			}
			b.WriteString("```\n")
		}
		if cmd.HasInheritedFlags() && cmd.InheritedFlags().FlagUsages() != root.PersistentFlags().FlagUsages() && !cmd.HasSubCommands() {
			fmt.Fprintf(&b, "\nThose of `%s` hold here, too.\n", cmd.Parent().CommandPath())
		}
		if cmd.HasSubCommands() && cmd.HasLocalFlags() && cmd.PersistentFlags().HasAvailableFlags() {
			fmt.Fprintf(&b, "\nIts subcommands have in common:\n\n```text\n%s```\n", cmd.PersistentFlags().FlagUsages())
		}
		if cmd.Example != "" {
			fmt.Fprintf(&b, "\n```sh\n%s```\n", example(cmd))
		}
	})
	return b.String()
}

// sharedFlags are the flags that three commands and more describe in the same words.
func sharedFlags(root *cobra.Command) *pflag.FlagSet {
	shared := pflag.NewFlagSet("", pflag.ContinueOnError)
	times := map[string][]*pflag.Flag{}
	eachOfOurs(root, func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Hidden || f.Name == "help" || cmd.HasSubCommands() {
				return
			}
			times[f.Name] = append(times[f.Name], f)
			n := 0
			for _, other := range times[f.Name] {
				if sameFlag(other, f) {
					n++
				}
			}
			if n >= 3 && shared.Lookup(f.Name) == nil {
				shared.AddFlag(f)
			}
		})
	})
	return shared
}

func sameFlag(a, b *pflag.Flag) bool {
	return a.Usage == b.Usage && a.DefValue == b.DefValue && a.Shorthand == b.Shorthand && a.Value.Type() == b.Value.Type()
}

// each goes through the commands, those below root and those below them.
func each(cmd *cobra.Command, f func(*cobra.Command)) {
	for _, sub := range cmd.Commands() {
		if !sub.Hidden {
			f(sub)
			each(sub, f)
		}
	}
}

// eachOfOurs is each without help and completion, which are cobra's.
func eachOfOurs(root *cobra.Command, f func(*cobra.Command)) {
	each(root, func(cmd *cobra.Command) {
		if path := strings.Fields(cmd.CommandPath()); path[1] != "help" && path[1] != "completion" {
			f(cmd)
		}
	})
}

// prose is text of the help as Markdown.
func prose(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i, line := range lines {
		lines[i] = escape(line)
	}
	return strings.Join(lines, "\n")
}

var escape = strings.NewReplacer("<", `\<`, "*", `\*`, "_", `\_`, "|", `\|`).Replace

// example is the examples of a command without their indentation.
func example(cmd *cobra.Command) string {
	var b strings.Builder
	for line := range strings.Lines(cmd.Example) {
		b.WriteString(strings.TrimPrefix(strings.TrimRight(line, "\n"), "  ") + "\n")
	}
	return b.String()
}
