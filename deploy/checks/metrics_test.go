package checks

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// series are the metrics of docs/metrics.md with their labels. A test of
// metrics/prom holds that these are the ones that exist.
func series(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, row := range regexp.MustCompile("(?m)^- `(\\w+)(?:\\{([^}]*)\\})?`: ").FindAllStringSubmatch(read(t, root, "docs/metrics.md"), -1) {
		all[row[1]] = append(strings.Split(row[2], ","), "job", "instance", "le")
	}
	if len(all) < 30 {
		t.Fatalf("only %d series found in docs/metrics.md", len(all))
	}
	return all
}

var (
	selector = regexp.MustCompile(`\b(sluice_\w+)(?:\{([^}]*)\})?`)
	matcher  = regexp.MustCompile(`(\w+)\s*(?:=~|!=|!~|=)\s*"([^"]*)"`)
	grouping = regexp.MustCompile(`\bby \(([^)]*)\) \(`)
	suffix   = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// wrong returns unknown names in an expression: series, labels, and values of outcome
// and state, which are literals in source.
func wrong(expr string, known map[string][]string, source string) (all []string) {
	labels := map[string]bool{}
	for _, m := range selector.FindAllStringSubmatch(expr, -1) {
		has, ok := known[m[1]]
		if !ok {
			has, ok = known[suffix.ReplaceAllString(m[1], "")]
		}
		if !ok {
			all = append(all, m[1]+" does not exist")
			continue
		}
		for _, l := range has {
			labels[l] = true
		}
		for _, l := range matcher.FindAllStringSubmatch(m[2], -1) {
			if !slices.Contains(has, l[1]) {
				all = append(all, m[1]+" has no label "+l[1])
			}
			if l[1] != "outcome" && l[1] != "state" {
				continue
			}
			for value := range strings.SplitSeq(l[2], "|") {
				if !strings.Contains(source, `"`+value+`"`) {
					all = append(all, m[1]+" has no "+l[1]+" "+value)
				}
			}
		}
	}
	for _, m := range grouping.FindAllStringSubmatch(expr, -1) {
		for l := range strings.SplitSeq(m[1], ", ") {
			if len(labels) > 0 && !labels[l] {
				all = append(all, "nothing of it has a label "+l)
			}
		}
	}
	return all
}

// promSource is the code that has the values of outcome and state: metrics/prom,
// and the results of records and the states of routes.
func promSource(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "metrics/prom/*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	all.WriteString(read(t, root, "flow/route.go") + read(t, root, "flow/options.go"))
	for _, f := range files {
		if !strings.HasSuffix(f, "_test.go") {
			all.WriteString(read(t, f))
		}
	}
	return all.String()
}

func TestAlertsNameMetricsThatExist(t *testing.T) {
	known, source := series(t), promSource(t)
	named := map[string]bool{}
	for _, r := range yamlFile(t, deploy, "prometheus/alerts.yaml").at("groups", 0, "rules").list() {
		name := r.at("alert").text()
		named[name] = true
		for _, w := range wrong(r.at("expr").text(), known, source) {
			t.Errorf("%s: %s", name, w)
		}
		for _, text := range []string{r.at("annotations", "summary").text(), r.at("annotations", "description").text()} {
			for _, m := range regexp.MustCompile(`\bsluice_\w+`).FindAllString(text, -1) {
				if known[m] == nil {
					t.Errorf("%s: %s does not exist", name, m)
				}
			}
		}
		if s := r.at("labels", "severity").text(); s != "critical" && s != "warning" {
			t.Errorf("%s: severity is %q", name, s)
		}
	}

	tested := map[string]bool{}
	tests := yamlFile(t, deploy, "prometheus/alerts_test.yaml")
	for _, s := range tests.values("series") {
		for _, w := range wrong(s.text(), known, source) {
			t.Errorf("%s: %s", s.name, w)
		}
	}
	for _, fires := range tests.values("labels") {
		if m := regexp.MustCompile(`alertname="(\w+)"`).FindStringSubmatch(fires.text()); m != nil {
			tested[m[1]] = true
		}
	}
	if !maps.Equal(named, tested) {
		t.Errorf("alerts.yaml has %v, alerts_test.yaml has proof for %v", slices.Sorted(maps.Keys(named)), slices.Sorted(maps.Keys(tested)))
	}
}

// operations.md says for each alert when it fires, and what to do.
func TestPagesTellOfTheAlerts(t *testing.T) {
	rows := map[string]string{} // when it fires, by alert
	for _, row := range regexp.MustCompile(`(?m)^(Sluice\w+) \| (.+) \| (.+)$`).FindAllStringSubmatch(read(t, root, "docs/operations.md"), -1) {
		rows[row[1]] = row[2]
	}
	named := map[string]bool{}
	for _, r := range yamlFile(t, deploy, "prometheus/alerts.yaml").at("groups", 0, "rules").list() {
		name, expr := r.at("alert").text(), strings.TrimSpace(r.at("expr").text())
		named[name] = true
		row, ok := rows[name]
		if !ok {
			t.Errorf("docs/operations.md does not say when %s fires, and what to do", name)
			continue
		}
		if series := regexp.MustCompile(`\b(?:sluice_\w+|up)\b`).FindString(expr); !strings.Contains(row, strings.TrimSuffix(series, "_bucket")) {
			t.Errorf("docs/operations.md: %s is of %s: %s", name, series, row)
		}
		if limit := regexp.MustCompile(`[<>=]+ [\d.* ]+\d|[<>=]+ \d`).FindAllString(expr, -1); !strings.Contains(row, "`"+limit[len(limit)-1]+"`") {
			t.Errorf("docs/operations.md: %s fires at %q: %s", name, limit, row)
		}
		want := ""
		if r.has("for") {
			want = "for " + r.at("for").text()
		}
		if got := regexp.MustCompile(`\bfor \d+[mh]\b`).FindString(row); got != want {
			t.Errorf("docs/operations.md: %s fires %q, want %q", name, got, want)
		}
	}
	if len(named) != len(rows) || len(named) < 10 {
		t.Errorf("alerts.yaml has %d alerts, docs/operations.md %d", len(named), len(rows))
	}
}

func TestDashboardNamesMetricsThatExist(t *testing.T) {
	known, source := series(t), promSource(t)
	dashboard := jsonFile(t, deploy, "grafana/sluice.json")
	exprs := dashboard.values("expr")
	if len(exprs) < 20 {
		t.Errorf("only %d expressions found", len(exprs))
	}
	for _, e := range exprs {
		for _, w := range wrong(e.text(), known, source) {
			t.Errorf("%s: %s", e.text(), w)
		}
	}
	chosen := dashboard.at("templating").values("definition")
	if len(chosen) != 2 {
		t.Errorf("%d variables found, want those of job and instance", len(chosen))
	}
	for _, v := range chosen {
		// Every daemon has this series, also without streams.
		if !strings.HasPrefix(v.text(), "label_values(sluice_ready") {
			t.Errorf("%s is %s, want what sluice_ready has", v.name, v.text())
		}
	}
	taken, ids := map[[2]int]string{}, map[float64]string{}
	for _, p := range dashboard.at("panels").list() {
		title, at := p.at("title").text(), p.at("gridPos")
		if other, ok := ids[p.at("id").num()]; ok {
			t.Errorf("%s has the id of %s", title, other)
		}
		ids[p.at("id").num()] = title
		x, y := int(at.at("x").num()), int(at.at("y").num())
		for dx := range int(at.at("w").num()) {
			for dy := range int(at.at("h").num()) {
				cell := [2]int{x + dx, y + dy}
				if other, ok := taken[cell]; ok || cell[0] > 23 {
					t.Fatalf("%s lies over %q, or outside", title, other)
				}
				taken[cell] = title
			}
		}
	}
}

func TestWrongExpressionsAreFound(t *testing.T) {
	known := map[string][]string{"sluice_a_total": {"route", "outcome"}, "sluice_b_seconds": {"sink", "le"}, "sluice_d": {"state"}}
	for expr, want := range map[string]string{
		`rate(sluice_a_total{outcome="parked"}[5m])`:            "",
		`sum by (sink, le) (rate(sluice_b_seconds_bucket[5m]))`: "",
		`sluice_c > 0`:                                     "sluice_c does not exist",
		`sluice_a_total{table="x"}`:                        "sluice_a_total has no label table",
		`sluice_a_total{outcome=~"parked|lost"}`:           "sluice_a_total has no outcome lost",
		`sluice_d{state="open"} == 1`:                      "sluice_d has no state open",
		`sum by (route, shard) (rate(sluice_a_total[5m]))`: "nothing of it has a label shard",
	} {
		if got := strings.Join(wrong(expr, known, `"parked"`), "; "); got != want {
			t.Errorf("%s: %q, want %q", expr, got, want)
		}
	}
}

func TestTheChartHasTheAlerts(t *testing.T) {
	const copied = "helm/sluice/files/alerts.yaml"
	if read(t, deploy, copied) != read(t, deploy, "prometheus/alerts.yaml") {
		t.Errorf("deploy/%s is not prometheus/alerts.yaml: a chart reads files of its own folder only, so copy it", copied)
	}
	if info, err := os.Lstat(filepath.Join(deploy, copied)); err != nil || !info.Mode().IsRegular() {
		t.Errorf("%s: want a file, not a link, which a packed chart would lack: %v", copied, err)
	}
}
