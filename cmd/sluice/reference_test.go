package main

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write docs/cli.md")

// docs/cli.md has the help of the commands.
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

// Every command has a description and an example. Every command that prints data has
// --json.
func TestCommandsAreDescribed(t *testing.T) {
	c := &cli{lookup: func(string) (string, bool) { return "", false }, stdout: io.Discard, stderr: io.Discard}
	noJSON := map[string]bool{ // what they print is a file, a script or a log, or JSON anyway
		"sluice init": true, "sluice open": true, "sluice run": true, "sluice lambda filters": true, "sluice help": true,
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

// reference is docs/cli.md. A flag is described once: with the common flags, with
// those of a group of commands, or with its command.
func reference(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString("# The command line\n\n" +
		"<!-- Made of the commands' own help by go generate ./cmd/sluice: change it there. -->\n\n")
	b.WriteString(prose(root.Long) + "\n\n" + block(example(root)) + "\n")
	shared := sharedFlags(root)
	except := slices.DeleteFunc(slices.Clone(withoutAccount), func(name string) bool { return name == "completion" || name == "help" })
	fmt.Fprintf(&b, "## Common flags\n\nEach command takes `--profile`, `--region` and `--role-arn`, except %s. Each command that prints data takes `--json`.\n\n**backfill, audit, reindex.** %s %s\n\n%s", strings.Join(except, ", "), escape(routeHelp), escape(searchHelp), block(shared.FlagUsages()))
	eachOfOurs(root, func(cmd *cobra.Command) {
		long := strings.ReplaceAll(strings.ReplaceAll(cmd.Long, "\n\n"+routeHelp, ""), "\n\n"+searchHelp, "")
		if long == "" {
			long = cmd.Short + "."
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", cmd.CommandPath(), prose(long))
		if cmd.HasSubCommands() {
			for _, g := range groups(cmd) {
				writeFlags(&b, "flags of "+g.of+":\n", g.flags, shared)
			}
			return
		}
		usage := ""
		if _, arguments, ok := strings.Cut(cmd.Use, " "); ok {
			usage = cmd.CommandPath() + " " + arguments + "\n"
		}
		if cmd.Name() == "run" { // the configuration describes what they set
			writeNames(&b, cmd.LocalFlags())
		} else {
			writeFlags(&b, usage, ownFlags(cmd), shared)
		}
		if cmd.Example != "" {
			fmt.Fprintf(&b, "\n%s", block(example(cmd)))
		}
	})
	return b.String()
}

// said are shared flags: the page names once the commands that have them.
var said = []string{"json", "profile", "region", "role-arn"}

// writeFlags describes flags below a title, usage or the name of a group. It only names
// shared flags.
func writeFlags(b *strings.Builder, title string, flags, shared *pflag.FlagSet) {
	own, common := pflag.NewFlagSet("", pflag.ContinueOnError), ""
	flags.VisitAll(func(f *pflag.Flag) {
		if s := shared.Lookup(f.Name); s != nil && sameFlag(s, f) {
			if !slices.Contains(said, f.Name) {
				common += " --" + f.Name
			}
		} else {
			own.AddFlag(f)
		}
	})
	var parts []string
	if title != "" && (own.HasAvailableFlags() || common != "" || !strings.HasPrefix(title, "flags of")) {
		parts = append(parts, title)
	}
	if own.HasAvailableFlags() {
		parts = append(parts, own.FlagUsages())
	}
	if common != "" {
		parts = append(parts, "common flags:"+common+"\n")
	}
	if len(parts) > 0 {
		fmt.Fprintf(b, "\n%s", block(strings.Join(parts, "\n")))
	}
}

// writeNames names the flags that set fields of the configuration, which has their
// meanings and defaults.
func writeNames(b *strings.Builder, flags *pflag.FlagSet) {
	b.WriteString("\nIts flags set fields of [name](configuration.md#the-file), [source](configuration.md#source), [daemon](configuration.md#daemon), " +
		"[deadLetter.park](configuration.md#deadletter) and [aws](configuration.md#aws). Each but the last three has a variable, such as `SLUICE_LOG_LEVEL`. " +
		"`SLUICE_TABLES`, `SLUICE_QUEUES` and `SLUICE_ALLOW_HOST` take lists with commas.\n\n")
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" {
			b.WriteString(block("--" + f.Name + "\n"))
		}
	})
}

// block is a block of code in Markdown.
func block(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) != "" {
			b.WriteString("    ")
		}
		b.WriteString(line)
	}
	return b.String()
}

// flagGroup is some subcommands of a command, and the flags that they have in common.
type flagGroup struct {
	of    string
	flags *pflag.FlagSet
}

// groups are the flags that several subcommands of cmd describe in the same words.
func groups(cmd *cobra.Command) []flagGroup {
	subs := visible(cmd)
	var all []flagGroup
	done := map[*pflag.Flag]bool{}
	add := func(of string, f *pflag.Flag) {
		for _, g := range all {
			if g.of == of {
				g.flags.AddFlag(f)
				return
			}
		}
		g := flagGroup{of, pflag.NewFlagSet("", pflag.ContinueOnError)}
		g.flags.AddFlag(f)
		all = append(all, g)
	}
	cmd.PersistentFlags().VisitAll(func(f *pflag.Flag) { add("every subcommand", f) })
	for _, sub := range subs {
		sub.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if f.Hidden || f.Name == "help" || done[f] {
				return
			}
			var names []string
			var same []*pflag.Flag
			for _, other := range subs {
				if g := other.LocalNonPersistentFlags().Lookup(f.Name); g != nil && sameFlag(g, f) {
					names, same = append(names, other.Name()), append(same, g)
				}
			}
			if len(same) < 2 {
				return
			}
			for _, g := range same {
				done[g] = true
			}
			of := strings.Join(names, ", ")
			if len(same) == len(subs) {
				of = "every subcommand"
			}
			add(of, f)
		})
	}
	return all
}

// ownFlags are the flags of cmd without those of its group.
func ownFlags(cmd *cobra.Command) *pflag.FlagSet {
	var all []flagGroup
	if cmd.Parent().HasParent() {
		all = groups(cmd.Parent())
	}
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		for _, g := range all {
			if s := g.flags.Lookup(f.Name); s != nil && sameFlag(s, f) {
				return
			}
		}
		if !f.Hidden && f.Name != "help" {
			own.AddFlag(f)
		}
	})
	return own
}

// sharedFlags are the flags that several commands or groups describe in the same
// words.
func sharedFlags(root *cobra.Command) *pflag.FlagSet {
	shared := pflag.NewFlagSet("", pflag.ContinueOnError)
	times := map[string][]*pflag.Flag{}
	count := func(f *pflag.Flag) { times[f.Name] = append(times[f.Name], f) }
	eachOfOurs(root, func(cmd *cobra.Command) {
		if !cmd.HasSubCommands() {
			ownFlags(cmd).VisitAll(count)
			return
		}
		for _, g := range groups(cmd) {
			g.flags.VisitAll(count)
		}
	})
	for _, name := range slices.Sorted(maps.Keys(times)) {
		best, most := (*pflag.Flag)(nil), 1
		for _, f := range times[name] {
			n := 0
			for _, other := range times[name] {
				if sameFlag(other, f) {
					n++
				}
			}
			if n > most {
				best, most = f, n
			}
		}
		if best != nil {
			shared.AddFlag(best)
		}
	}
	return shared
}

func visible(cmd *cobra.Command) []*cobra.Command {
	return slices.DeleteFunc(slices.Clone(cmd.Commands()), func(sub *cobra.Command) bool { return sub.Hidden })
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

// prose is text of the help as Markdown: indented lines are a block of their own.
func prose(text string) string {
	var b strings.Builder
	paragraphs := strings.Split(strings.TrimSpace(text), "\n\n")
	for i, p := range paragraphs {
		if i > 0 {
			b.WriteString("\n\n")
		}
		if strings.HasPrefix(p, "  ") {
			b.WriteString("```text\n" + p + "\n```")
		} else {
			b.WriteString(escape(p))
		}
	}
	return b.String()
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
