package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// boms list, for each binary, the modules that are linked into it, as the binary
// itself has them.
func (r *release) boms() error {
	for _, t := range targets {
		if err := r.bom(r.binaries[t], r.path("%s.cdx.json", t)); err != nil {
			return err
		}
	}
	return nil
}

func (r *release) bom(binary, to string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(binary) //nolint:gosec // just built
	if err != nil {
		return err
	}
	command := component(cdx.ComponentTypeApplication, info.Main.Path, "v"+r.version)
	command.Name = filepath.Base(binary)
	command.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: fmt.Sprintf("%x", sha256.Sum256(data))}}
	command.Licenses = &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}}

	all := []cdx.Component{component(cdx.ComponentTypeLibrary, "std", strings.TrimPrefix(info.GoVersion, "go"))}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		all = append(all, component(cdx.ComponentTypeLibrary, m.Path, m.Version))
	}
	var linked []string
	for _, c := range all {
		linked = append(linked, c.BOMRef)
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Timestamp: r.at.Format(time.RFC3339), Component: &command}
	bom.Components = &all
	bom.Dependencies = &[]cdx.Dependency{{Ref: command.BOMRef, Dependencies: &linked}}
	return create(to, func(w io.Writer) error {
		return cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6)
	})
}

func component(kind cdx.ComponentType, path, version string) cdx.Component {
	purl := "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
	return cdx.Component{BOMRef: purl, Type: kind, Name: path, Version: version, PackageURL: purl}
}
