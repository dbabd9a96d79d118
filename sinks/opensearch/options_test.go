package opensearch

import (
	"strings"
	"testing"
)

func TestOptionsAreValidated(t *testing.T) {
	client := connected(t, Connection{})
	for field, o := range map[string]Options{
		"MaxItems": {MaxItems: -1}, "MaxBytes": {MaxBytes: -1}, "InFlight": {InFlight: -1}, "WaitBytes": {WaitBytes: -1},
		"Timeout": {Timeout: -1}, "Backoff": {Backoff: -1},
	} {
		if _, err := New(client, o); err == nil || !strings.Contains(err.Error(), "Options."+field+" is negative") {
			t.Errorf("%s: %v", field, err)
		}
	}
	if _, err := New(client, Options{MaxItems: -1, Backoff: -1}); err == nil || strings.Count(err.Error(), "negative") != 2 {
		t.Errorf("%v", err)
	}
	if _, err := New(nil, Options{}); err == nil {
		t.Error("no Client, no error")
	}
}

// Requests are compressed where it pays.
func TestGzipByDefault(t *testing.T) {
	cfg := awsConfig()
	for _, tt := range []struct {
		c    Connection
		o    Options
		want int
	}{
		{Connection{}, Options{}, 0},
		{Connection{URLs: []string{"http://localhost:9200", "http://[::1]:9200"}}, Options{}, 0},
		{Connection{}, Options{GzipAbove: 1}, 1},
		{Connection{URLs: []string{"https://search.example.com"}}, Options{}, 64 << 10},
		{Connection{URLs: []string{"https://search.example.com"}}, Options{GzipAbove: -1}, -1},
		{Connection{URLs: []string{"https://x.aoss.amazonaws.com"}, AWS: &cfg, Service: "aoss"}, Options{}, 0},
		{Connection{URLs: []string{"https://x.es.amazonaws.com"}, AWS: &cfg}, Options{}, 64 << 10},
	} {
		s, err := New(connected(t, tt.c), tt.o)
		if err != nil {
			t.Fatal(err)
		}
		if s.gzip != tt.want {
			t.Errorf("%v %d: %d, want %d", tt.c.URLs, tt.o.GzipAbove, s.gzip, tt.want)
		}
	}
}
