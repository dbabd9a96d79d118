//go:build proof

package flow_test

// proof runs all cases of the scenarios, which takes minutes.
const proof = true
