package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
)

var chartVersions = regexp.MustCompile(`(?m)^(version|appVersion): .*$`)

// chart is the Helm chart, with the release's version as its own and the image's.
func (r *release) chart() error {
	const folder = "deploy/helm/"
	all, err := r.tree(folder + "sluice")
	if err != nil {
		return err
	}
	var files []file
	for _, f := range all {
		f.name = strings.TrimPrefix(f.name, folder)
		switch {
		case strings.HasPrefix(f.name, "sluice/ci/"): // as .helmignore has it
			continue
		case f.name == "sluice/Chart.yaml":
			if n := len(chartVersions.FindAll(f.data, -1)); n != 2 {
				return fmt.Errorf("%sChart.yaml has %d lines of version and appVersion: want one of each", folder, n)
			}
			f.data = chartVersions.ReplaceAll(f.data, []byte(`$1: "`+r.version+`"`))
		}
		files = append(files, f)
	}
	return r.tarGz(filepath.Join(r.dist, "sluice-"+r.version+".tgz"), files)
}

// compose is deploy/compose and what it names, with the release's image in place of
// the build.
func (r *release) compose() error {
	const built = "    build:\n      context: ../..\n      dockerfile: deploy/docker/Dockerfile\n    image: sluice\n"
	files := []file{r.licence()}
	files[0].name = "sluice_" + r.version + "_compose/LICENSE"
	for _, name := range []string{"deploy/compose", "deploy/local/compose.yaml", "deploy/local/env.sh", "deploy/prometheus/alerts.yaml", "deploy/grafana/sluice.json"} {
		some, err := r.tree(name)
		if err != nil {
			return err
		}
		for _, f := range some {
			if f.name == "deploy/compose/compose.yaml" {
				if !bytes.Contains(f.data, []byte(built)) {
					return fmt.Errorf("%s does not build its image as this program knows it:\n%s", f.name, built)
				}
				f.data = bytes.Replace(f.data, []byte(built), []byte("    image: "+r.imageName()+"\n"), 1)
				f.data = bytes.Replace(f.data, []byte("up --build"), []byte("up"), 1)
			}
			f.name = "sluice_" + r.version + "_compose/" + f.name
			files = append(files, f)
		}
	}
	return r.tarGz(r.path("compose.tar.gz"), files)
}
