//go:build integration && !race

package main

const many = 10_000 // points of a map
