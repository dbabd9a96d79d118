package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // registers itself
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// A user of the system has a fixed name, so that a file with secrets can be its
// group's. The unit's dynamic user takes the account of that name.
const sysusers = "u sluice - \"Sluice\" /var/lib/sluice\n"

// With DPKG_ROOT another system is being put together: the scripts run outside of it.
//
// The package does not start the daemon: there is no configuration yet. An upgrade
// restarts a running daemon. A service that does not start, or stop, is no reason for
// a package to stay half installed: its own log says why.
const afterInstall = `#!/bin/sh
set -e
if [ -n "$DPKG_ROOT" ]; then exit 0; fi
if command -v systemd-sysusers >/dev/null; then systemd-sysusers sluice.conf || true; fi
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  systemctl try-restart sluice.service || true
fi
`

// The argument is remove, or 0, unless this is an upgrade.
const beforeRemove = `#!/bin/sh
set -e
case "$1" in remove|0) ;; *) exit 0 ;; esac
if [ -n "$DPKG_ROOT" ]; then exit 0; fi
if [ -d /run/systemd/system ]; then systemctl disable --now sluice.service || true; fi
`

const afterRemove = `#!/bin/sh
set -e
if [ -n "$DPKG_ROOT" ]; then exit 0; fi
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
`

func (r *release) packages() error {
	unit, err := os.ReadFile(filepath.Join(r.root, "deploy/systemd/sluice.service"))
	if err != nil {
		return err
	}
	const local = "/usr/local/bin/sluice"
	if !bytes.Contains(unit, []byte("ExecStart="+local)) {
		return fmt.Errorf("deploy/systemd/sluice.service does not start %s: change this program too", local)
	}
	// What an administrator does by hand is in the file's first paragraph.
	_, unit, _ = bytes.Cut(bytes.ReplaceAll(unit, []byte(local), []byte("/usr/bin/sluice")), []byte("\n[Unit]\n"))
	shared := map[string][]byte{
		"/usr/lib/systemd/system/sluice.service": append([]byte("[Unit]\n"), unit...),
		"/usr/lib/sysusers.d/sluice.conf":        []byte(sysusers),
	}
	for _, f := range r.docs {
		to, data := "", f.data
		switch name := filepath.Base(f.name); {
		case strings.HasSuffix(name, ".1"):
			to, data = "/usr/share/man/man1/"+name+".gz", compress(f.data)
		case name == "sluice.bash":
			to = "/usr/share/bash-completion/completions/sluice"
		case name == "_sluice":
			to = "/usr/share/zsh/site-functions/_sluice"
		case name == "sluice.fish":
			to = "/usr/share/fish/vendor_completions.d/sluice.fish"
		case name == "CHANGELOG.md":
			to, data = "/usr/share/doc/sluice/changelog.gz", compress(f.data)
		default:
			continue
		}
		shared[to] = data
	}
	for _, t := range targets {
		if t.os != "linux" {
			continue
		}
		for _, format := range []string{"deb", "rpm"} {
			if err := r.pack(format, t, shared); err != nil {
				return fmt.Errorf("%s for %s: %w", format, t, err)
			}
		}
	}
	return nil
}

func (r *release) pack(format string, t target, shared map[string][]byte) error {
	contents := files.Contents{
		{Source: r.binaries[t], Destination: "/usr/bin/sluice", FileInfo: &files.ContentFileInfo{Mode: 0o755, MTime: r.at}},
		{Destination: "/etc/sluice", Type: files.TypeDir, FileInfo: &files.ContentFileInfo{Mode: 0o755, MTime: r.at}},
	}
	copyright, err := r.copyright(r.binaries[t])
	if err != nil {
		return err
	}
	own := map[string][]byte{"/" + copyrightPath: copyright}
	maps.Copy(own, shared)
	for to, data := range own {
		from, err := r.stage(to, data)
		if err != nil {
			return err
		}
		contents = append(contents, &files.Content{Source: from, Destination: to, FileInfo: &files.ContentFileInfo{Mode: 0o644, MTime: r.at}})
	}
	var scripts nfpm.Scripts
	for _, script := range []struct {
		path       *string
		name, text string
	}{
		{&scripts.PostInstall, "postinst", afterInstall},
		{&scripts.PreRemove, "prerm", beforeRemove},
		{&scripts.PostRemove, "postrm", afterRemove},
	} {
		from, err := r.stage(script.name, []byte(script.text))
		if err != nil {
			return err
		}
		*script.path = from
	}
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "sluice", Arch: t.arch, Platform: t.os, Version: r.version, Release: "1", Section: "net", Priority: "optional",
		Maintainer: "Sluice <https://github.com/sluicehq/sluice>", Homepage: "https://github.com/sluicehq/sluice", Vendor: "Sluice",
		Description: "React to changes in DynamoDB tables\nReads DynamoDB Streams and turns changes into messages, documents and items.",
		License:     "Apache-2.0", DisableGlobbing: true, MTime: r.at,
		Overridables: nfpm.Overridables{
			Contents: contents, Scripts: scripts, Recommends: []string{"ca-certificates"},
			RPM: nfpm.RPM{BuildHost: "localhost", Group: "System Environment/Daemons"},
		},
	})
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return err
	}
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	return create(r.path("%s.%s", t, format), func(w io.Writer) error { return packager.Package(info, w) })
}

// stage writes a file for a packager, which takes files only.
func (r *release) stage(name string, data []byte) (string, error) {
	to := filepath.Join(r.work, "stage", name)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return "", err
	}
	return to, os.WriteFile(to, data, 0o644) //nolint:gosec // it is published
}

func compress(data []byte) []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	_, _ = z.Write(data) // into memory
	_ = z.Close()
	return b.Bytes()
}
