package daemon

import (
	"testing"

	"github.com/sluicehq/sluice/internal/page"
)

// A cascade is shown from its first report to its end; a short one never.
func TestCascadesGoOn(t *testing.T) {
	var c cascades
	if all := c.now(); all == nil || len(all) != 0 {
		t.Errorf("%v", all)
	}
	c.set(page.Cascade{Table: "rows", Parent: "orders/1", Deleted: 10, Seconds: 5, PerSecond: 2}, false)
	c.set(page.Cascade{Table: "rows", Parent: "orders/2", Deleted: 900, Seconds: 60}, false)
	c.set(page.Cascade{Table: "rows", Parent: "orders/3", Deleted: 1}, true)
	c.set(page.Cascade{Table: "rows", Parent: "orders/1", Deleted: 20, Seconds: 10, PerSecond: 2}, false)
	all := c.now()
	if len(all) != 2 || all[0].Parent != "orders/2" || all[1].Deleted != 20 || all[1].Seconds != 10 || all[1].PerSecond != 2 || all[1].Table != "rows" {
		t.Errorf("%+v", all)
	}
	c.set(page.Cascade{Parent: "orders/2"}, true)
	if all := c.now(); len(all) != 1 || all[0].Parent != "orders/1" {
		t.Errorf("%+v", all)
	}
}
