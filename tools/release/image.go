package main

import (
	"archive/zip"
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const (
	nobody = 65532 // user and group of the image, as deploy/docker/Dockerfile has them
	state  = "var/lib/sluice"
)

func (r *release) imageName() string { return "ghcr.io/sluicehq/sluice:" + r.version }

// image is what deploy/docker/Dockerfile makes, from nothing and without a daemon:
// an archive with the OCI layout of an index of both processors.
func (r *release) image() error {
	base, err := r.baseLayer()
	if err != nil {
		return err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, t := range targets {
		if t.os != "linux" {
			continue
		}
		data, err := os.ReadFile(r.binaries[t])
		if err != nil {
			return err
		}
		copyright, err := r.copyright(r.binaries[t])
		if err != nil {
			return err
		}
		binary, err := r.layer([]file{
			{name: "usr/local/bin/sluice", data: data, mode: 0o755},
			{name: copyrightPath, data: copyright, mode: 0o644},
		})
		if err != nil {
			return err
		}
		platform := v1.Platform{OS: t.os, Architecture: t.arch}
		img, err := r.platformImage(platform, base, binary)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: &platform}})
	}
	folder := filepath.Join(r.work, "layout")
	p, err := layout.Write(folder, empty.Index)
	if err != nil {
		return err
	}
	// docker load and podman load take the name from these.
	err = p.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"io.containerd.image.name":          r.imageName(),
		"org.opencontainers.image.ref.name": r.version,
	}))
	if err != nil {
		return err
	}
	files, err := filesBelow(folder)
	if err != nil {
		return err
	}
	return create(r.path("image.tar"), func(w io.Writer) error { return r.tar(w, files) })
}

func (r *release) platformImage(platform v1.Platform, layers ...v1.Layer) (v1.Image, error) {
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	var all []mutate.Addendum
	for _, l := range layers {
		all = append(all, mutate.Addendum{Layer: l, History: v1.History{Created: v1.Time{Time: r.at}, CreatedBy: "make release"}})
	}
	img, err := mutate.Append(img, all...)
	if err != nil {
		return nil, err
	}
	return mutate.ConfigFile(img, r.configOf(img, platform))
}

func (r *release) configOf(img v1.Image, platform v1.Platform) *v1.ConfigFile {
	have, err := img.ConfigFile()
	if err != nil { // of an image in memory
		panic(err)
	}
	c := have.DeepCopy()
	c.OS, c.Architecture, c.Created = platform.OS, platform.Architecture, v1.Time{Time: r.at}
	c.Config = v1.Config{
		User:       fmt.Sprintf("%d:%[1]d", nobody),
		WorkingDir: "/" + state,
		Entrypoint: []string{"/usr/local/bin/sluice"},
		Cmd:        []string{"run"},
		Env: []string{
			"SLUICE_CONFIG=/etc/sluice/sluice.yaml",
			"SLUICE_STATE=/" + state + "/state.db",
			"SLUICE_LISTEN=0.0.0.0:9464",
			"SLUICE_LOG_FORMAT=json",
		},
		ExposedPorts: map[string]struct{}{"9464/tcp": {}},
		StopSignal:   "SIGTERM",
		Healthcheck: &v1.HealthConfig{
			Test:     []string{"CMD", "/usr/local/bin/sluice", "health"},
			Interval: 30 * time.Second, Timeout: 10 * time.Second, StartPeriod: time.Minute,
		},
		Labels: map[string]string{
			"org.opencontainers.image.source":   "https://github.com/sluicehq/sluice",
			"org.opencontainers.image.version":  r.version,
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	return c
}

// baseLayer has no binary: the roots that Mozilla trusts, time zones, an account, and
// the folder of the state, which a volume takes its owner from.
func (r *release) baseLayer() (v1.Layer, error) {
	var roots bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue // a file cannot say what the root is trusted for
		}
		if err := pem.Encode(&roots, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, err
		}
	}
	files := []file{
		{name: "etc/passwd", data: fmt.Appendf(nil, "nonroot:x:%d:%[1]d:nonroot:/%s:/sbin/nologin\n", nobody, state), mode: 0o644},
		{name: "etc/group", data: fmt.Appendf(nil, "nonroot:x:%d:\n", nobody), mode: 0o644},
		{name: "etc/sluice/", mode: 0o755},
		{name: "etc/ssl/certs/ca-certificates.crt", data: roots.Bytes(), mode: 0o644},
		{name: "tmp/", mode: 0o1777},
		{name: state + "/", mode: 0o700, owner: nobody},
	}
	zones, err := r.zoneFiles()
	if err != nil {
		return nil, err
	}
	return r.layer(append(files, zones...))
}

// zoneFiles are the time zones of the Go that compiled the binaries.
func (r *release) zoneFiles() (files []file, err error) {
	goroot, err := r.goEnv("GOROOT")
	if err != nil {
		return nil, err
	}
	zones, err := zip.OpenReader(filepath.Join(goroot, "lib/time/zoneinfo.zip"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, zones.Close()) }()
	for _, z := range zones.File {
		if strings.HasSuffix(z.Name, "/") {
			continue
		}
		data, err := fs.ReadFile(zones, z.Name)
		if err != nil {
			return nil, err
		}
		files = append(files, file{name: "usr/share/zoneinfo/" + z.Name, data: data, mode: 0o644})
	}
	return files, nil
}

// layer has files and the folders above them.
func (r *release) layer(files []file) (v1.Layer, error) {
	var b bytes.Buffer
	if err := r.tar(&b, withFolders(files)); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil }, tarball.WithMediaType(types.OCILayer))
}

// withFolders adds the folders that files are in, where files has them not, and sorts
// by name.
func withFolders(files []file) []file {
	all := map[string]file{}
	for _, f := range files {
		all[f.name] = f
	}
	for _, f := range files {
		for dir := path.Dir(strings.TrimSuffix(f.name, "/")); dir != "."; dir = path.Dir(dir) {
			if _, ok := all[dir+"/"]; !ok {
				all[dir+"/"] = file{name: dir + "/", mode: 0o755}
			}
		}
	}
	return slices.SortedFunc(maps.Values(all), func(a, b file) int { return strings.Compare(a.name, b.name) })
}

func filesBelow(folder string) (files []file, err error) {
	err = fs.WalkDir(os.DirFS(folder), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(folder, name)) //nolint:gosec // just written
		files = append(files, file{name: name, data: data, mode: 0o644})
		return err
	})
	return withFolders(files), err
}
