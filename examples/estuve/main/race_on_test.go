//go:build integration && race

package main

// many is fewer with the race detector, which makes a count take ten times as
// long. It is more than a page.
const many = 2_000
