// Package products is a first application: a file, sluice.yaml, and its tests. It
// has no code.
package products
