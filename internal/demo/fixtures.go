package demo

import (
	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/examples/manhunt"
)

// change is one write that the demo makes.
type change struct {
	event  string // what the stream will call it
	entity string
	key    string
	item   sluice.Item
}

// changes lists the example's fixtures as the stream will see them.
func changes() []change {
	var all []change
	written := map[string]bool{}
	for _, it := range manhunt.Fixtures() {
		c := change{event: "INSERT", entity: attribute(it, "entityType"), key: attribute(it, "PK") + " / " + attribute(it, "SK"), item: it}
		if written[c.key] {
			c.event = "MODIFY"
		}
		written[c.key] = true
		all = append(all, c)
	}
	return all
}

func attribute(it sluice.Item, name string) string {
	v, _ := it.Lookup(name)
	return v.Str()
}

// wantBodies is what must come of the fixtures, to the byte.
var wantBodies = []string{
	`{"kind":"manhunt.attempt","v":1,"searchId":"a271244","domainId":"db3280c","contactId":"89fa8f8","methodId":"538235b","order":1,"step":0,"notBefore":"2019-12-30T19:32:14Z","dedupeKey":"a271244#0"}`,
	`{"kind":"manhunt.attempt","v":1,"searchId":"a271244","domainId":"db3280c","contactId":"89fa8f8","methodId":"800e613","order":2,"step":1,"notBefore":"2019-12-30T19:52:20Z","dedupeKey":"a271244#1"}`,
}
