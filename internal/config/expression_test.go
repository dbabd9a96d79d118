package config

import (
	"strings"
	"testing"

	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/streamtest"
)

func TestExpression(t *testing.T) {
	c := &Config{EntityType: EntityType{Attribute: "kind"}}
	match, err := c.Expression(`type == "order" && new.total > 5`)
	if err != nil {
		t.Fatal(err)
	}
	of := func(kind, total string) item.Item {
		return item.Of(item.String("id", "1"), item.String("kind", kind), item.Number("total", total))
	}
	for _, tt := range []struct {
		kind, total string
		want        bool
	}{{"order", "7", true}, {"order", "5", false}, {"line", "7", false}} {
		rec := streamtest.Insert("t", of(tt.kind, tt.total))
		if got, err := match(&rec); got != tt.want || err != nil {
			t.Errorf("%s of %s: %v, %v", tt.kind, tt.total, got, err)
		}
	}
	wrong := streamtest.Insert("t", item.Of(item.String("id", "1"), item.String("kind", "order"), item.String("total", "x")))
	if _, err := match(&wrong); err == nil {
		t.Error("a text is more than 5")
	}
	if _, err := c.Expression("nwe.total > 5"); err == nil || !strings.Contains(err.Error(), "there is no nwe") {
		t.Errorf("error %v", err)
	}
}
