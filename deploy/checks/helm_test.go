//go:build integration

package checks

import (
	"bytes"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/sluicehq/sluice/internal/config"
)

const (
	chart = "deploy/helm/sluice"
	full  = "deploy/helm/sluice/ci/full-values.yaml"
	// minimal is the only required setting.
	minimal = "--set-file=config=deploy/compose/sluice.yaml"
)

// kubernetes are the versions that the chart is checked against: its oldest, and
// a new one.
var kubernetes = []string{"1.27", "1.37"}

var (
	fleet  = []string{"-f", full, "--set", "fleet.table=sluice-state,fleet.replicas=3"}
	scaled = []string{"-f", full, "--set", "fleet.table=sluice-state,fleet.autoscaling.enabled=true,fleet.autoscaling.maxReplicas=9"}
)

func helm(t *testing.T) string { return goTool(t, "helm", "helm.sh/helm/v3/cmd/helm") }

// rendered are the chart's documents by kind.
func rendered(t *testing.T, version string, args ...string) map[string]doc {
	t.Helper()
	return renderedAs(t, "search", version, args...)
}

func renderedAs(t *testing.T, release, version string, args ...string) map[string]doc {
	t.Helper()
	out := manifests(t, release, version, args...)
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

var rendering = map[string]string{} // by arguments; no test of the package is parallel

// manifests returns what helm renders of the chart.
func manifests(t *testing.T, release, version string, args ...string) string {
	t.Helper()
	key := strings.Join(append(args, release, version), " ")
	if rendering[key] == "" {
		rendering[key] = must(t, helm(t), append([]string{"template", release, chart, "--namespace", "n", "--kube-version", version}, args...)...)
	}
	return rendering[key]
}

// Kubernetes takes what the chart makes. TestHelmValues holds this of each value.
func TestHelmKubernetesTakesTheChart(t *testing.T) {
	for _, version := range kubernetes {
		var all []string
		for _, args := range [][]string{{"-f", full}, {minimal}, {"--set", "existingConfigMap=mine"}, fleet, scaled} {
			all = append(all, manifests(t, "search", version, args...))
		}
		validate(t, version, strings.Join(all, "\n---\n"))
	}
}

// validate compares with the schemas of a version of Kubernetes. Those of the
// Prometheus Operator and of KEDA are not among them: TestHelmMonitoring and
// TestHelmScalesAFleet look at these.
func validate(t *testing.T, version, manifests string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "manifests.yaml")
	if err := os.WriteFile(file, []byte(manifests), 0o600); err != nil {
		t.Fatal(err)
	}
	out := py(t, "kubernetes-validate", "--strict", "-k", version, file)
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, "INFO ") && !regexp.MustCompile(`kind (PodMonitor|PrometheusRule|ScaledObject) `).MatchString(line) {
			t.Errorf("Kubernetes %s: %s", version, line)
		}
	}
	if n := strings.Count(out, " passed for resource "); n < 20 {
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
			c.at("readinessProbe", "httpGet", "path").is("/startedz")
			set.at("podManagementPolicy").is("Parallel")
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

// KEDA adds pods while the lag is too large; the Deployment has no number then.
func TestHelmScalesAFleet(t *testing.T) {
	for _, version := range kubernetes {
		docs := rendered(t, version, scaled...)
		if docs["Deployment"].at("spec").has("replicas") {
			t.Error("the Deployment and KEDA both set the number of pods")
		}
		spec := docs["ScaledObject"].at("spec")
		spec.at("scaleTargetRef", "name").is(docs["Deployment"].at("metadata", "name").text())
		spec.at("minReplicaCount").is(2)
		spec.at("maxReplicaCount").is(9)
		spec.at("triggers", 0, "metadata", "query").is(`max(sluice_watermark_age_seconds{namespace="n",pod=~"search-sluice-.*"})`)
		spec.at("triggers", 0, "metadata", "threshold").is("60")
	}
	for want, set := range map[string]string{
		"needs fleet.table": "fleet.autoscaling.enabled=true",
		"maxReplicas is 1":  "fleet.table=t,fleet.autoscaling.enabled=true,fleet.autoscaling.maxReplicas=1",
	} {
		out, err := try(t, helm(t), "template", "s", chart, "--kube-version", "1.37", minimal, "--set", set)
		if err == nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v, want %q:\n%s", set, err, want, out)
		}
	}
}

// With a state table the pods need no volume, and a new one starts beside the old.
func TestHelmFleet(t *testing.T) {
	for _, version := range kubernetes {
		docs := rendered(t, version, fleet...)
		for _, kind := range []string{"StatefulSet", "Service"} {
			if docs[kind].v != nil {
				t.Errorf("there is a %s", kind)
			}
		}
		spec := docs["Deployment"].at("spec")
		spec.at("replicas").is(3)
		spec.at("strategy", "rollingUpdate", "maxUnavailable").is(0)
		pod := spec.at("template", "spec")
		pod.at("topologySpreadConstraints", 1, "topologyKey").is("kubernetes.io/hostname")
		if stop := pod.at("terminationGracePeriodSeconds").num(); stop < grace.Seconds()+10 {
			t.Errorf("SIGKILL comes after %vs, want more than the grace", stop)
		}
		for _, v := range pod.at("volumes").list() {
			v.at("name").is("config")
		}
		c := pod.at("containers", 0)
		c.at("env", 0, "name").is("SLUICE_STATE")
		c.at("env", 0, "value").is("dynamodb:sluice-state")
		c.at("readinessProbe", "httpGet", "path").is("/startedz") // a pod that stands by is ready
		docs["PodDisruptionBudget"].at("spec", "maxUnavailable").is(1)
		rules := docs["PrometheusRule"].at("spec", "groups", 0, "rules", 0, "expr").text()
		if want := `pod=~"search-sluice-[a-z0-9]{1,10}-[a-z0-9]{5}"`; !strings.Contains(rules, want) {
			t.Errorf("the alert for an absent daemon is %s, want %s", rules, want)
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
		"two replicas":         {minimal, "--set", "replicas=2"},
		"a map":                {"--set", "config.name=x"},
		"many writers":         {minimal, "--set", "persistence.accessMode=ReadWriteMany"},
		"no time to end":       {minimal, "--set", "graceMarginSeconds=0"},
		"a misspelt log level": {minimal, "--set", "logLevel=verbose"},
		"the file, twice":      {minimal, "--set", `configFiles.sluice\.yaml=x`},
		"a label, a number":    {minimal, "--set", "podLabels.a=1"},
		"a variable, a number": {minimal, "--set", "env[0].name=A,env[0].value=1"},
		"a name with a dot":    {minimal, "--set", "fullnameOverride=a.b"},
	} {
		out, err := try(t, helm(t), append([]string{"template", "s", chart, "--kube-version", "1.37"}, args...)...)
		if err == nil || !strings.Contains(out, "don't meet the specifications of the schema") {
			t.Errorf("%s: %v, want a refusal by the schema:\n%s", name, err, out)
		}
	}
}

// The chart works with its defaults and a configuration. Without a configuration the
// error says what to set.
func TestHelmSaysThatItNeedsAConfiguration(t *testing.T) {
	out, err := try(t, helm(t), "template", "s", chart, "--kube-version", "1.37")
	if err == nil || !strings.Contains(out, "--set-file config=sluice.yaml") || !strings.Contains(out, "existingConfigMap=NAME") {
		t.Errorf("%v, want it to say what to set:\n%s", err, out)
	}
	must(t, helm(t), "lint", "--strict", chart)
}

// Helm takes names for releases that YAML reads as numbers, or that no Service can have:
// RFC 1035 labels, and from Kubernetes 1.34 to 1.37 step by step RFC 1123's (KEP-5311).
func TestHelmNamesOfReleases(t *testing.T) {
	for release, name := range map[string]string{"123": "r123-sluice", "1e3": "r1e3-sluice", "team.orders": "team-orders-sluice", "sluice.2": "sluice-2"} {
		docs := renderedAs(t, release, "1.37", "-f", full)
		set := docs["StatefulSet"]
		set.at("spec", "selector", "matchLabels", "app.kubernetes.io/instance").is(release)
		set.at("spec", "serviceName").is(name)
		docs["Service"].at("metadata", "name").is(name)
	}
}

// The notes say how a StatefulSet whose fields cannot be changed is replaced.
// Helm renders notes only beside a cluster: a copy of the chart has them in a document.
func TestHelmNotes(t *testing.T) {
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS(filepath.Join(deploy, "helm/sluice"))); err != nil {
		t.Fatal(err)
	}
	text := "kind: Notes\nnotes: |\n  " + strings.ReplaceAll(read(t, deploy, "helm/sluice/templates/NOTES.txt"), "\n", "\n  ")
	if err := os.WriteFile(filepath.Join(folder, "templates/notes.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	notes := must(t, helm(t), "template", "search", folder, "--namespace", "n", "--kube-version", "1.37", minimal, "--show-only", "templates/notes.yaml")
	for _, want := range []string{"kubectl -n n delete sts search-sluice --cascade=orphan", "kubectl -n n exec statefulset/search-sluice -- sluice status"} {
		if !strings.Contains(notes, want) {
			t.Errorf("no %q in\n%s", want, notes)
		}
	}
}

// others are values, in JSON, that differ from those of values.yaml.
var others = map[string]string{
	"image.repository":              `"other"`,
	"image.tag":                     `"v2"`,
	"image.digest":                  `"sha256:` + strings.Repeat("1", 64) + `"`,
	"image.pullPolicy":              `"Always"`,
	"imagePullSecrets":              `[{"name":"a"}]`,
	"nameOverride":                  `"other"`,
	"fullnameOverride":              `"other"`,
	"config":                        `"other"`,
	"existingConfigMap":             `"other"`,
	"configFiles":                   `{"a.json":"{}"}`,
	"env":                           `[{"name":"A","value":"b"}]`,
	"envFrom":                       `[{"secretRef":{"name":"a"}}]`,
	"serviceAccount.create":         `false`,
	"serviceAccount.name":           `"other"`,
	"serviceAccount.annotations":    `{"a":"b"}`,
	"persistence.size":              `"3Gi"`,
	"persistence.storageClass":      `"other"`,
	"persistence.accessMode":        `"ReadWriteOncePod"`,
	"fleet.table":                   `"state"`,
	"fleet.replicas":                `3,fleet.table="state"`,
	"fleet.autoscaling.enabled":     `true,fleet.table="state"`,
	"fleet.autoscaling.maxReplicas": `5,fleet.table="state",fleet.autoscaling.enabled=true`,
	"fleet.autoscaling.lagSeconds":  `61,fleet.table="state",fleet.autoscaling.enabled=true`,
	"fleet.autoscaling.prometheus":  `"http://other",fleet.table="state",fleet.autoscaling.enabled=true`,
	"graceSeconds":                  `26`,
	"graceMarginSeconds":            `16`,
	"resources.requests.cpu":        `"200m"`,
	"resources.requests.memory":     `"300Mi"`,
	"resources.limits.memory":       `"2Gi"`,
	"logLevel":                      `"debug"`,
	"podAnnotations":                `{"a":"b"}`,
	"podLabels":                     `{"a":"b"}`,
	"nodeSelector":                  `{"a":"b"}`,
	"tolerations":                   `[{"operator":"Exists"}]`,
	"affinity":                      `{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"Exists"}]}]}}}`,
	"priorityClassName":             `"other"`,
	"podDisruptionBudget.enabled":   `false`,
	"podMonitor.enabled":            `false`,
	"podMonitor.interval":           `"31s"`,
	"podMonitor.labels":             `{"a":"b"}`,
	"prometheusRule.enabled":        `false`,
	"prometheusRule.labels":         `{"a":"b"}`,
}

// Each value has an effect, and a misspelt one beside it is refused.
func TestHelmValues(t *testing.T) {
	var names []string
	owners := map[string]bool{"": true} // of values; what resources holds is Kubernetes' own
	var walk func(name string, v any)
	walk = func(name string, v any) {
		m, _ := v.(map[string]any)
		if len(m) == 0 {
			names = append(names, name)
			return
		}
		if name != "" && !strings.HasPrefix(name, "resources") {
			owners[name+"."] = true
		}
		for k, v := range m {
			walk(strings.TrimPrefix(name+"."+k, "."), v)
		}
	}
	walk("", yamlFile(t, deploy, "helm/sluice/values.yaml").v)
	if slices.Sort(names); !slices.Equal(names, slices.Sorted(maps.Keys(others))) {
		t.Fatalf("values.yaml has %q, and there are others for %q", names, slices.Sorted(maps.Keys(others)))
	}

	const version = "1.37"
	template := func(values string) (string, error) {
		return try(t, helm(t), "template", "search", chart, "--kube-version", version,
			"--set-json", `config="name: usual",podMonitor.enabled=true,prometheusRule.enabled=true`, "--set-json", values)
	}
	usual, err := template("global={}")
	if err != nil {
		t.Fatalf("%v\n%s", err, usual)
	}
	documents := map[string]bool{}
	for _, name := range names {
		out, err := template(name + "=" + others[name])
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
			continue
		}
		if out == usual {
			t.Errorf("%s: nothing is other with %s", name, others[name])
		}
		for document := range strings.SplitSeq(out, "---\n# Source: ") {
			documents[document] = true
		}
	}
	validate(t, version, "# "+strings.Join(slices.Sorted(maps.Keys(documents)), "---\n# "))
	for owner := range owners {
		if out, err := template(owner + "misspelt=1"); err == nil || !strings.Contains(out, "misspelt") {
			t.Errorf("%smisspelt: %v, want a refusal by the schema:\n%s", owner, err, out)
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

	exprs := func(d doc) (all []string) {
		for _, r := range d.at("groups", 0, "rules").list() {
			all = append(all, r.at("expr").text())
		}
		return all
	}
	want := exprs(yamlFile(t, deploy, "prometheus/alerts.yaml"))
	if got := exprs(rendered(t, "1.37", minimal, "--set", "prometheusRule.enabled=true")["PrometheusRule"].at("spec")); !slices.Equal(got, want) {
		t.Errorf("the chart's rules are %q, want %q", got, want)
	}
	// Another release's daemon must not hide an absent one.
	for i := range want {
		want[i] = strings.ReplaceAll(want[i], `up{job="sluice"}`, `up{job="sluice",namespace="n",pod="search-sluice-0"}`)
	}
	if got := exprs(docs["PrometheusRule"].at("spec")); !slices.Equal(got, want) {
		t.Errorf("with a PodMonitor, the chart's rules are %q, want %q", got, want)
	}
}
