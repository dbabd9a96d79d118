//go:build integration && !proof

package losstest

const items = 800

// kills is when the server is killed, by the number of writes. Each start of it
// costs ten seconds of a processor.
var kills = []int{changes / 2}
