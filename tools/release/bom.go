package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// boms list the modules that are linked into the programs of an archive, as these
// themselves have them.
func (r *release) boms() error {
	for _, t := range targets {
		if err := r.bom(r.path("%s.cdx.json", t), r.binaries[t], r.local(t)); err != nil {
			return err
		}
	}
	return nil
}

// bom is of the first program; others come with it.
func (r *release) bom(to string, binaries ...string) error {
	bom := cdx.NewBOM()
	libraries := map[string]cdx.Component{}
	var programs []cdx.Component
	var dependencies []cdx.Dependency
	for _, binary := range binaries {
		info, err := buildinfo.ReadFile(binary)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(binary) //nolint:gosec // just built
		if err != nil {
			return err
		}
		command := component(cdx.ComponentTypeApplication, info.Main.Path, "v"+r.version)
		command.Name = strings.TrimSuffix(path.Base(info.Path), ".exe")
		command.PackageURL += "#" + strings.TrimPrefix(info.Path, info.Main.Path+"/")
		command.BOMRef = command.PackageURL
		command.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: fmt.Sprintf("%x", sha256.Sum256(data))}}
		command.Licenses = &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}}
		programs = append(programs, command)

		linked := []cdx.Component{component(cdx.ComponentTypeLibrary, "std", strings.TrimPrefix(info.GoVersion, "go"))}
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			linked = append(linked, component(cdx.ComponentTypeLibrary, m.Path, m.Version))
		}
		var refs []string
		for _, c := range linked {
			libraries[c.BOMRef] = c
			refs = append(refs, c.BOMRef)
		}
		dependencies = append(dependencies, cdx.Dependency{Ref: command.BOMRef, Dependencies: &refs})
	}
	bom.Metadata = &cdx.Metadata{Timestamp: r.at.Format(time.RFC3339), Component: &programs[0]}
	all := programs[1:]
	for _, ref := range slices.Sorted(maps.Keys(libraries)) {
		all = append(all, libraries[ref])
	}
	bom.Components = &all
	bom.Dependencies = &dependencies
	return create(to, func(w io.Writer) error {
		return cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6)
	})
}

func component(kind cdx.ComponentType, name, version string) cdx.Component {
	purl := "pkg:golang/" + name + "@" + strings.ReplaceAll(version, "+", "%2B")
	return cdx.Component{BOMRef: purl, Type: kind, Name: name, Version: version, PackageURL: purl}
}
