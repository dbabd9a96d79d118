package cascade

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
)

func TestConfigNamesAllFaults(t *testing.T) {
	w := points(0)
	for _, tt := range []struct {
		name   string
		change func(*Config)
		want   []string
	}{
		{"good", func(*Config) {}, nil},
		{"nothing", func(c *Config) { *c = Config{} }, []string{
			"Table is missing", "Get is missing", "Query is missing", "Delete is missing", "Key is missing: want", "Children is missing", "Send is missing; without",
		}},
		{"no child", func(c *Config) { c.Children = []Child{{}} }, []string{
			"Children[0].Table is missing", "Children[0].Key is missing", "Children[0].Partition.Name is missing", "Children[0].Partition.From is missing", "Children[0].Partition has no value",
		}},
		{"negative", func(c *Config) {
			c.InlineTime, c.Budget, c.Margin, c.SweepAfter, c.Every, c.PageSize, c.Threshold = -1, -1, -1, -1, -1, -1, -2
		}, []string{"Threshold is -2", "InlineTime is -1ns", "Budget is", "Margin is", "SweepAfter is", "Every is", "PageSize is -1"}},
		{"late sweep", func(c *Config) { c.SweepAfter = time.Hour }, []string{"SweepAfter is 1h0m0s; a queue delays by 15m0s at most"}},
		{"unlimited", func(c *Config) { c.Send, c.Threshold = nil, Unlimited }, nil},
		{"unlimited by index", func(c *Config) { c.Send, c.Threshold, c.Children[0].Index = nil, Unlimited, "x" }, []string{"found by an index need a sweep"}},
		{"keys", func(c *Config) {
			c.Key = []string{"a", "a"}
			c.Children[0].Key = []string{"a", ""}
		}, []string{`Key is ["a" "a"]; want two names`, `Children[0].Key is ["a" ""]; want no empty name`}},
		{"key of three", func(c *Config) { c.Key = []string{"a", "b", "c"} }, []string{`want one name or two`}},
		{"other key", func(c *Config) {
			c.Children[0].Partition.Name = "user_id"
			c.Children[0].Sort = Attr{Name: "x", Before: "y"}
		}, []string{`Children[0].Partition.Name is "user_id"; the partition key of table points is "map_id"`, `Children[0].Sort.Name is "x", not the sort key`}},
		{"other key by index", func(c *Config) {
			c.Children[0].Index, c.Children[0].Partition.Name = "byUser", "user_id"
			c.Children[0].Sort = Attr{Name: "x", Before: "y"}
		}, nil},
		{"limit", func(c *Config) { c.Children[0].NotNewer = Limit{Name: "version", From: "info.version"} }, nil},
		{"limit of nothing", func(c *Config) { c.Children[0].NotNewer = Limit{Time: "seconds"} }, []string{"Children[0].NotNewer.Name is missing"}},
		{"limit of two", func(c *Config) { c.Children[0].NotNewer = Limit{Name: "a", From: "b", Time: "seconds"} }, []string{`Children[0].NotNewer has From "b" and Time "seconds"; set one of them`}},
		{"limit of none", func(c *Config) { c.Children[0].NotNewer = Limit{Name: "a"} }, []string{`NotNewer has From "" and Time ""`}},
		{"limit of the key", func(c *Config) { c.Children[0].NotNewer = Limit{Name: "a", From: "map_id"} }, []string{`NotNewer.From is "map_id", which is of the parent's key`}},
		{"limit of a strange form", func(c *Config) { c.Children[0].NotNewer = Limit{Name: "a", Time: "days"} }, []string{`NotNewer.Time is "days"; want one of ["seconds" "milliseconds" "rfc3339"]`}},
		{"same names", func(c *Config) { c.Children = []Child{c.Children[0], c.Children[0]} }, []string{`Children[1].Name is "", as that of Children[0]`}},
		{"sweep", func(c *Config) { c.Children[0].Name = "sweep" }, []string{`Children[0].Name is "sweep"`}},
		{"prefix without an end", func(c *Config) { c.Children[0].Sort = Attr{Name: "point_id", From: "map_id"} }, []string{"Sort.After is empty: the prefix of parent 1 would take the children of parent 12"}},
		{"no prefix", func(c *Config) { c.Children[0].Sort = Attr{Name: "point_id"} }, []string{"Sort has no value"}},
		{"prefix of what", func(c *Config) { c.Children[0].Sort = Attr{Before: "x"} }, []string{"Sort.Name is missing"}},
		{"attributes", func(c *Config) { c.Children[0].Attributes = []string{"x"} }, []string{"Attributes are for Exclude, which is missing"}},
		{"constant partition", func(c *Config) { c.Children[0].Partition = Attr{Name: "map_id", Before: "all"} }, []string{"Partition.From is missing: the children of one parent would be those of all"}},
		{"constant partition with a prefix", func(c *Config) {
			c.Children[0].Partition = Attr{Name: "map_id", Before: "all"}
			c.Children[0].Sort = Attr{Name: "point_id", From: "map_id", After: "#"}
		}, nil},
	} {
		c := w.config()
		tt.change(&c)
		x, err := New(c)
		if tt.want == nil {
			if err != nil || x == nil {
				t.Errorf("%s: %v", tt.name, err)
			}
			continue
		}
		if err == nil {
			t.Errorf("%s: no error", tt.name)
			continue
		}
		lines := strings.Split(err.Error(), "\n")
		if len(lines) != len(tt.want) {
			t.Errorf("%s: %d faults, want %d:\n%v", tt.name, len(lines), len(tt.want), err)
		}
		for _, want := range tt.want {
			if !slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, want) }) {
				t.Errorf("%s: %q is not in\n%v", tt.name, want, err)
			}
		}
		if !strings.HasPrefix(err.Error(), "cascade: ") || sluice.IsPermanent(err) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}
