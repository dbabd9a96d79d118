package main

import (
	"reflect"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/config"
)

func TestAsk(t *testing.T) {
	for _, tt := range []struct {
		name, answers string
		want          config.InitOptions
		asked         int // questions
		err           string
	}{
		{"defaults", "\n\n\n\n", config.InitOptions{
			Tables: []string{"orders"}, EntityType: "entityType", Types: []string{"order"}, Handlers: []string{"log"},
		}, 4, ""},
		{"again", "a.b/c\n\n\nx\nprojct\nproject, log\na b c\nid\n\n", config.InitOptions{
			Tables: []string{"orders"}, EntityType: "entityType", Types: []string{"x"}, Handlers: []string{"project", "log"}, Key: []string{"id"}, Cluster: "http://search:9200",
		}, 9, ""},
		{"all", "maps,points\nkind\nx y\nsend project, cascade\n id \nq\nhttps://search\n", config.InitOptions{
			Tables: []string{"maps", "points"}, Key: []string{"id"}, EntityType: "kind", Types: []string{"x", "y"},
			Handlers: []string{"send", "project", "cascade"}, Queue: "q", Cluster: "https://search",
		}, 7, ""},
		{"ends", "maps\n", config.InitOptions{}, 2, "nothing was written"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var o config.InitOptions
			var out strings.Builder
			err := ask(strings.NewReader(tt.answers), &out, "http://search:9200", &o)
			if n := strings.Count(out.String(), "]: "); n != tt.asked {
				t.Errorf("%d questions, want %d:\n%s", n, tt.asked, &out)
			}
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("error %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil || !reflect.DeepEqual(o, tt.want) {
				t.Errorf("%+v, %v; want %+v\n%s", o, err, tt.want, &out)
			}
			if _, err := config.Init(o); err != nil {
				t.Error(err)
			}
		})
	}
}
