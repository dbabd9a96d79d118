package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/cpuguy83/go-md2man/v2/md2man"
)

// readDocs makes what archives and packages have beside the binary.
func (r *release) readDocs() error {
	for _, name := range []string{"LICENSE", "CHANGELOG.md"} {
		data, err := os.ReadFile(filepath.Join(r.root, name))
		if err != nil {
			return err
		}
		r.docs = append(r.docs, file{name: name, data: data, mode: 0o644})
	}
	command, ok := r.binaries[target{runtime.GOOS, runtime.GOARCH}]
	if !ok {
		return fmt.Errorf("no binary for %s/%s, whose completion command must run: release on a system of %v", runtime.GOOS, runtime.GOARCH, targets)
	}
	for _, c := range []struct{ shell, name string }{{"bash", "sluice.bash"}, {"zsh", "_sluice"}, {"fish", "sluice.fish"}, {"powershell", "sluice.ps1"}} {
		out, err := exec.Command(command, "completion", c.shell).Output() //nolint:gosec // just built
		if err != nil {
			return fmt.Errorf("sluice completion %s: %w", c.shell, err)
		}
		r.docs = append(r.docs, file{name: "completions/" + c.name, data: out, mode: 0o644})
	}
	pages, err := r.manuals(func(args ...string) (string, error) {
		out, err := exec.Command(command, append(args, "--help")...).Output() //nolint:gosec // just built
		return string(out), err
	})
	r.docs = append(r.docs, pages...)
	return err
}

// manuals are manual pages of all commands, made of their own help.
func (r *release) manuals(help func(args ...string) (string, error)) ([]file, error) {
	return r.manual(help, nil, "react to changes in DynamoDB tables")
}

// section is a heading of the help, with the text below it.
var section = regexp.MustCompile(`(?m)^([A-Z][A-Za-z ]*):\n((?:(?: .*)?\n)+)`)

// manual is the page of a command, and those of the commands below it.
func (r *release) manual(help func(args ...string) (string, error), args []string, short string) ([]file, error) {
	text, err := help(args...)
	description, rest, ok := strings.Cut(text, "\nUsage:\n")
	if err != nil || !ok {
		return nil, fmt.Errorf("sluice %s --help has no usage: %w\n%s", strings.Join(args, " "), err, text)
	}
	page := strings.Join(append([]string{"sluice"}, args...), "-")
	var body strings.Builder
	fmt.Fprintf(&body, "%% %q \"1\" %q \"Sluice %s\" \"Sluice\"\n\n# NAME\n%s - %s\n\n# DESCRIPTION\n```\n%s\n```\n",
		strings.ToUpper(page), r.at.Format("January 2006"), r.version, page, short, strings.TrimSpace(description))
	var below []file
	for _, s := range section.FindAllStringSubmatch("Usage:\n"+rest, -1) {
		fmt.Fprintf(&body, "\n# %s\n```\n%s\n```\n", strings.ToUpper(s[1]), strings.TrimRight(s[2], "\n"))
		if s[1] != "Available Commands" {
			continue
		}
		for line := range strings.Lines(s[2]) {
			name, short, _ := strings.Cut(strings.TrimSpace(line), " ")
			if name == "" || name == "help" || name == "completion" {
				continue
			}
			pages, err := r.manual(help, append(slices.Clone(args), name), strings.TrimSpace(short))
			if err != nil {
				return nil, err
			}
			below = append(below, pages...)
		}
	}
	if len(args) > 0 {
		fmt.Fprintf(&body, "\n# SEE ALSO\n**%s**(1)\n", strings.Join(append([]string{"sluice"}, args[:len(args)-1]...), "-"))
	}
	return append([]file{{name: "man/" + page + ".1", data: md2man.Render([]byte(body.String())), mode: 0o644}}, below...), nil
}
