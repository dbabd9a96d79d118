package local

import "testing"

func TestParseSeries(t *testing.T) {
	s, err := ParseSeries(`# HELP x y
go_goroutines 17
process_resident_memory_bytes 3.5e+07
sluice_shards{table="items"} 12
`)
	if err != nil {
		t.Fatal(err)
	}
	if len(s) != 3 || s["go_goroutines"] != 17 || s["process_resident_memory_bytes"] != 35e6 || s[`sluice_shards{table="items"}`] != 12 {
		t.Errorf("series are %v", s)
	}
	for _, bad := range []string{"lonely\n", "x many\n"} {
		if s, err := ParseSeries(bad); err == nil {
			t.Errorf("%q was taken for %v", bad, s)
		}
	}
}
