//go:build !proof

package flow_test

// proof is off: those cases are left out that take more than a second or two
// of real time, or that differ little from others.
const proof = false
