//go:build integration

package checks

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

func TestCompose(t *testing.T) {
	compose := goTool(t, "compose", "./compose")
	for _, file := range []string{"deploy/local/compose.yaml", "deploy/compose/compose.yaml"} {
		d := doc{t: t, name: file}
		if err := yaml.Unmarshal([]byte(must(t, compose, file)), &d.v); err != nil {
			t.Fatal(err)
		}
		services := d.at("services")
		for name := range services.v.(map[string]any) {
			s := services.at(name)
			if image := s.at("image").text(); !s.has("build") && !regexp.MustCompile(`:v?\d+\.\d+`).MatchString(image) {
				t.Errorf("%s: %s has no version", s.name, image)
			}
			if s.has("ports") {
				for _, p := range s.at("ports").list() {
					p.at("host_ip").is("127.0.0.1")
				}
			}
			for _, v := range s.values("source") {
				path, ok := v.v.(string)
				if !ok || !strings.HasPrefix(path, "/") {
					continue // a named volume
				}
				if _, err := os.Stat(path); err != nil {
					t.Errorf("%s: %v", v.name, err)
				}
			}
		}
	}
}

func TestComposeRunsAnUnprivilegedDaemon(t *testing.T) {
	s := yamlFile(t, deploy, "compose/compose.yaml").at("services", "sluice")
	s.at("read_only").is(true)
	s.at("cap_drop").is([]any{"ALL"})
	s.at("stop_grace_period").is("40s")
	if _, err := os.Stat(filepath.Join(deploy, "compose", s.at("build", "context").text(), s.at("build", "dockerfile").text())); err != nil {
		t.Error(err)
	}
}
