// Package deptest holds the tests of who imports whom. It has no code.
package deptest
