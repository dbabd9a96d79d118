//go:build integration && !proof

package losstest

const items = 800
