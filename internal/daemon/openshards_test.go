package daemon

import (
	"fmt"
	"testing"

	"github.com/sluicehq/sluice/sources/poller"
)

func TestOpenShards(t *testing.T) {
	var o openShards
	told := 0
	h := o.counted(poller.Hooks{Lineage: func(poller.Lineage) { told++ }})
	for _, l := range []poller.Lineage{
		{Table: "a", StreamARN: "1", Reading: 9},
		{Table: "a", StreamARN: "1", Reading: 1, Waiting: 2, Finished: 40, Halted: 3},
		{Table: "a", StreamARN: "2", Waiting: 10},
		{Table: "b", StreamARN: "3", Reading: 1},
		{Table: "b", StreamARN: "3"}, // it is read no more
	} {
		h.Lineage(l)
	}
	if got := fmt.Sprint(o.byTable()); got != "map[a:16]" || told != 5 {
		t.Errorf("%s after %d calls of the metrics' hook", got, told)
	}
}
