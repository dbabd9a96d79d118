package prom

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

var update = flag.Bool("update", false, "write docs/metrics.md")

const page = "../../docs/metrics.md"

const head = `# Metrics

Daemons and programs of ` + "`run.Main`" + ` serve these series on ` + "`/metrics`" + `, beside those of Go and the process; others use [metrics/prom](../metrics/prom/doc.go). Labels are in braces. Give ` + "`Setup.Metrics`" + ` to the options of your handlers and sinks; [declare your own](../metrics/metrics.go) by ` + "`metrics.New`" + `. Histograms have classic and native buckets. The lag to alert on is ` + "`sluice_watermark_age_seconds`" + `: see [operations](operations.md#numbers-to-alert-on).

<!-- Made of the code by go test ./metrics/prom -update. -->

`

// described is a Registerer that keeps the descriptions of what it is given.
type described []string

var desc = regexp.MustCompile(`^Desc\{fqName: "(\w+)", help: "(.*)", unit: "", constLabels: \{\}, variableLabels: \{(.*)\}\}$`)

func (d *described) Register(c prometheus.Collector) error {
	ch := make(chan *prometheus.Desc, 100)
	c.Describe(ch)
	close(ch)
	for one := range ch {
		m := desc.FindStringSubmatch(one.String())
		if m == nil {
			return fmt.Errorf("%s: not understood", one)
		}
		if m[3] != "" {
			m[1] += "{" + m[3] + "}"
		}
		*d = append(*d, fmt.Sprintf("- `%s`: %s\n", m[1], m[2]))
	}
	return nil
}

func (d *described) MustRegister(cs ...prometheus.Collector) {
	for _, c := range cs {
		if err := d.Register(c); err != nil {
			panic(err)
		}
	}
}

func (d *described) Unregister(prometheus.Collector) bool { return false }

func TestTheDocumentedSeriesAreThoseThatExist(t *testing.T) {
	var d described
	New(&d)
	if len(d) < 20 {
		t.Fatalf("only %d series found", len(d))
	}
	slices.Sort(d)
	want := []byte(head + strings.Join(d, ""))
	if *update {
		if err := os.WriteFile(page, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s does not list the series as they are: run go test ./metrics/prom -update", page)
	}
}
