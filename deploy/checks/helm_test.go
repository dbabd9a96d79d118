//go:build integration

package checks

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/sluicehq/sluice/config"
)

const (
	chart = "deploy/helm/sluice"
	full  = "deploy/helm/sluice/ci/full-values.yaml"
	// minimal is what a user has to set.
	minimal = "--set-file=config=deploy/compose/sluice.yaml"
)

// kubernetes are the versions that the chart is checked against: its oldest, and
// a new one.
var kubernetes = []string{"1.27", "1.37"}

func helm(t *testing.T) string { return goTool(t, "helm", "helm.sh/helm/v3/cmd/helm") }

// rendered are the chart's documents by kind.
func rendered(t *testing.T, version string, args ...string) map[string]doc {
	t.Helper()
	out := must(t, helm(t), append([]string{"template", "search", chart, "--namespace", "n", "--kube-version", version}, args...)...)
	validate(t, version, out)
	all := map[string]doc{}
	for d := yaml.NewDecoder(bytes.NewReader([]byte(out))); ; {
		one := doc{t: t}
		err := d.Decode(&one.v)
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, out)
		}
		one.name = one.at("kind").text()
		all[one.name] = one
	}
}

// validate compares with the schemas of a version of Kubernetes. Those of the
// Prometheus Operator are not among them: TestHelmMonitoring looks at these.
func validate(t *testing.T, version, manifests string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "manifests.yaml")
	if err := os.WriteFile(file, []byte(manifests), 0o600); err != nil {
		t.Fatal(err)
	}
	out := must(t, pyTool(t, "kubernetes-validate"), "--strict", "-k", version, file)
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, "INFO ") && !regexp.MustCompile(`kind (PodMonitor|PrometheusRule) `).MatchString(line) {
			t.Errorf("Kubernetes %s: %s", version, line)
		}
	}
	if n := strings.Count(out, " passed for resource "); n < 4 {
		t.Errorf("Kubernetes %s: only %d documents were looked at:\n%s", version, n, out)
	}
}

func TestHelmChart(t *testing.T) {
	must(t, helm(t), "lint", "--strict", chart, "-f", full)
	must(t, helm(t), "lint", "--strict", chart, minimal)
	for _, version := range kubernetes {
		for _, args := range [][]string{{"-f", full}, {minimal}, {"--set", "existingConfigMap=mine"}} {
			docs := rendered(t, version, args...)
			set := docs["StatefulSet"].at("spec")
			set.at("replicas").is(1)
			set.at("persistentVolumeClaimRetentionPolicy", "whenDeleted").is("Retain")
			pod := set.at("template", "spec")
			if stop := pod.at("terminationGracePeriodSeconds").num(); stop < grace.Seconds()+10 {
				t.Errorf("SIGKILL comes after %vs, want more than the grace", stop)
			}
			pod.at("securityContext", "runAsNonRoot").is(true)
			c := pod.at("containers", 0)
			c.at("securityContext", "readOnlyRootFilesystem").is(true)
			c.at("securityContext", "allowPrivilegeEscalation").is(false)
			c.at("livenessProbe", "httpGet", "path").is("/livez")
			c.at("readinessProbe", "httpGet", "path").is("/readyz")
			docs["PodDisruptionBudget"].at("spec", "maxUnavailable").is(1)
			if !strings.Contains(strings.Join(args, ""), "existing") {
				text := docs["ConfigMap"].at("data", "sluice.yaml").text()
				if _, err := config.Parse("sluice.yaml", t.TempDir(), []byte(text), func(string) (string, bool) { return "", false }); err != nil {
					t.Errorf("the daemon refuses it: %v in\n%s", err, text)
				}
			} else if docs["ConfigMap"].v != nil {
				t.Error("a ConfigMap is made beside the user's own")
			}
		}
	}
}

func TestHelmRestartsTheDaemonWhenItsConfigurationChanges(t *testing.T) {
	sum := func(args ...string) string {
		return rendered(t, "1.37", append([]string{minimal}, args...)...)["StatefulSet"].
			at("spec", "template", "metadata", "annotations", "checksum/config").text()
	}
	if a, b := sum(), sum("--set-file=config=deploy/README.md"); a == b {
		t.Error("another configuration has the same checksum")
	}
	if a, b := sum(), sum("--set", "image.tag=v2"); a != b {
		t.Error("another image has another checksum of the configuration")
	}
}

func TestHelmGraceIsLongerThanTheDaemons(t *testing.T) {
	pod := rendered(t, "1.37", minimal, "--set", "graceSeconds=100")["StatefulSet"].at("spec", "template", "spec")
	pod.at("terminationGracePeriodSeconds").is(115)
	for _, e := range pod.at("containers", 0, "env").list() {
		if e.at("name").text() == "SLUICE_GRACE" {
			e.at("value").is("100s")
			return
		}
	}
	t.Error("the daemon is not told of its grace")
}

func TestHelmRefusesWhatCannotWork(t *testing.T) {
	for name, args := range map[string][]string{
		"no configuration":     {},
		"two replicas":         {minimal, "--set", "replicas=2"},
		"a map":                {"--set", "config.name=x"},
		"many writers":         {minimal, "--set", "persistence.accessMode=ReadWriteMany"},
		"no time to end":       {minimal, "--set", "graceMarginSeconds=0"},
		"a misspelt log level": {minimal, "--set", "logLevel=verbose"},
	} {
		out, err := try(t, helm(t), append([]string{"template", "s", chart, "--kube-version", "1.37"}, args...)...)
		if err == nil || !strings.Contains(out, "don't meet the specifications of the schema") {
			t.Errorf("%s: %v, want a refusal by the schema:\n%s", name, err, out)
		}
	}
}

func TestHelmMonitoring(t *testing.T) {
	docs := rendered(t, "1.37", "-f", full)
	labels := docs["StatefulSet"].at("spec", "template", "metadata", "labels")
	monitor := docs["PodMonitor"].at("spec")
	for k, v := range monitor.at("selector", "matchLabels").v.(map[string]any) {
		labels.at(k).is(v)
	}
	port := monitor.at("podMetricsEndpoints", 0, "port").text()
	docs["StatefulSet"].at("spec", "template", "spec", "containers", 0, "ports", 0, "name").is(port)
	// The job that the alerts wait for is the value of this label.
	labels.at(monitor.at("jobLabel").text()).is("sluice")

	want := yamlFile(t, deploy, "prometheus/alerts.yaml")
	exprs := func(d doc) (all []string) {
		for _, r := range d.at("groups", 0, "rules").list() {
			all = append(all, r.at("expr").text())
		}
		return all
	}
	if got, want := exprs(docs["PrometheusRule"].at("spec")), exprs(want); !slices.Equal(got, want) {
		t.Errorf("the chart's rules are %q, want %q", got, want)
	}
}
