//go:build integration

package main

import "testing"

// A recount by an index that is not there would fail: validate says so before.
func TestIndexOfARecountIsMissing(t *testing.T) {
	w := newFileWorld(t, `
name: shop
source: {tables: [NAME-lines], start: TRIM_HORIZON}
routes:
  - name: count
    on: "line#*"
    count:
      id: lines
      markers: NAME-markers
      numbers: [{table: NAME-orders, attribute: lines, key: {order: line}, index: byCustomer, partition: line}]
`)
	w.sluice(0, []string{"validate", "--connect"}, "route count: a recount of lines of table "+w.name+"-orders cannot read the children: ", "specified index")
}
