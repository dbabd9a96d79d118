package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
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
	text, err := os.ReadFile(filepath.Join(r.root, "docs/cli.md"))
	if err != nil {
		return err
	}
	pages, err := r.manuals(string(text))
	r.docs = append(r.docs, pages...)
	return err
}

// manuals are the sections of docs/cli.md, which is made of the commands' own help,
// as manual pages: sluice(1) with the common flags, and one for each command.
func (r *release) manuals(cli string) ([]file, error) {
	intro, rest, ok := strings.Cut(cli, "\n## Common flags\n")
	_, intro, made := strings.Cut(intro, "-->\n")
	sections := strings.Split(rest, "\n## ")
	if !ok || !made || len(sections) < 20 {
		return nil, fmt.Errorf("docs/cli.md has %d sections behind Common flags: it no longer has the form that manual pages are made of", len(sections)-1)
	}
	var pages []file
	var all strings.Builder
	for _, s := range sections[1:] {
		title, body, _ := strings.Cut(s, "\n")
		page := strings.ReplaceAll(title, " ", "-")
		fmt.Fprintf(&all, "**%s**(1)\n\n", page)
		pages = append(pages, r.manual(page, body, "Common flags are in **sluice**(1)."))
	}
	first := r.manual("sluice", intro+"\n# COMMON FLAGS\n"+sections[0], all.String())
	return append([]file{first}, pages...), nil
}

// relative are links between documents of the repository, which a manual page has not.
var relative = regexp.MustCompile(`\[([^\]]*)\]\((?:[^):]*)\)`)

func (r *release) manual(page, body, seeAlso string) file {
	body = relative.ReplaceAllString(strings.TrimSpace(body), "$1")
	short, _, _ := strings.Cut(strings.Join(strings.Fields(body), " "), ". ")
	text := fmt.Sprintf("%% %q \"1\" %q \"Sluice %s\" \"Sluice\"\n\n# NAME\n%s - %s\n\n# DESCRIPTION\n%s\n\n# SEE ALSO\n%s\n",
		strings.ToUpper(page), r.at.Format("January 2006"), r.version, page, strings.TrimSuffix(short, "."), body, seeAlso)
	return file{name: "man/" + page + ".1", data: md2man.Render([]byte(text)), mode: 0o644}
}
