package metrics

import (
	"strings"
	"testing"
)

var (
	plain    = New(Metric{Name: "test_plain_total"})
	unwanted = New(Metric{Name: "test_unwanted_total"})
	twofold  = New(Metric{Name: "test_twofold_total", Labels: []string{"a", "b"}})
)

// bound counts how often a series was asked for, and adds up.
type bound struct {
	asked int
	sums  map[string]float64
}

func (b *bound) Wants(m *Metric) bool { return m != unwanted }

func (b *bound) Bind(m *Metric, labels ...string) func(float64) {
	b.asked++
	if m == plain {
		return nil // not wanted
	}
	of := strings.Join(labels, ",")
	return func(v float64) { b.sums[of] += v }
}

func TestSeries(t *testing.T) {
	m := &bound{sums: map[string]float64{}}
	s, none := twofold.Of(m), plain.Of(m)
	for range 3 {
		s.Add(1, "x", "y")
		s.Add(2, "x", "z")
		none.Add(1)
	}
	if m.sums["x,y"] != 3 || m.sums["x,z"] != 6 || m.asked != 3 {
		t.Errorf("%v, asked %d times, want once for each series", m.sums, m.asked)
	}
	if n := testing.AllocsPerRun(100, func() { s.Add(1, "x", "y") }); n > 0 {
		t.Errorf("%v allocations", n)
	}
	if unwanted.Of(m) != nil {
		t.Error("a series that the meter does not want")
	}
	var nobody *Series = plain.Of(nil)
	nobody.Add(1)
	if nobody.Bind() != nil {
		t.Error("somebody wants it")
	}
}

func TestDeclarations(t *testing.T) {
	for _, m := range []Metric{
		{Name: "test_plain_total"},
		{Name: "test_three", Labels: []string{"a", "b", "c"}},
		{Name: "test_dimension", CloudWatch: "Test", Dimension: "Route"},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s is taken", m.Name)
				}
			}()
			New(m)
		}()
	}
	if all := All(); len(all) != 3 || all[0] != plain || all[2] != twofold {
		t.Errorf("%d are declared", len(all))
	}
}

// Too few or too many values of labels are a mistake of the program, and name the
// metric.
func TestLabelsThatDoNotFit(t *testing.T) {
	s := twofold.Of(&bound{sums: map[string]float64{}})
	for _, values := range [][]string{nil, {"x"}, {"x", "y", "z"}} {
		func() {
			defer func() {
				if text, _ := recover().(string); !strings.Contains(text, "test_twofold_total") {
					t.Errorf("%q: panic %q", values, text)
				}
			}()
			s.Add(1, values...)
		}()
	}
}
