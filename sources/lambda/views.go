package lambda

import (
	"fmt"

	"github.com/sluicehq/sluice"
)

// need is a view that a route asks for.
type need struct {
	route string
	view  sluice.View
}

func needsOf(m sluice.Matcher) []need {
	var needs []need
	for _, r := range m.Routes() {
		if r.Needs != sluice.KeysOnly {
			needs = append(needs, need{r.Name, r.Needs})
		}
	}
	return needs
}

// checkViews refuses a batch of a stream that does not carry the images which
// the routes read: they would decide on what they do not see. Records that do
// not name their view pass.
func checkViews(needs []need, recs []sluice.Record) error {
	if len(needs) == 0 {
		return nil
	}
	last := ""
	for i := range recs {
		rec := &recs[i]
		if rec.ViewType == last || rec.ViewType == "" {
			continue
		}
		last = rec.ViewType
		view, err := sluice.ParseView(last)
		if err != nil {
			continue // a view of the future; the record itself is decoded
		}
		for _, n := range needs {
			if !view.Has(n.view) {
				return fmt.Errorf("the stream of table %q has view type %s, but route %q needs %s: "+
					"enable a stream with NEW_AND_OLD_IMAGES and point the event source mapping at it", rec.Table, view, n.route, n.view)
			}
		}
	}
	return nil
}
