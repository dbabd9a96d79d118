// Package deptest holds the tests over the module's own files: who imports
// whom, what a Lambda function links, and that the Go in README.md compiles.
// It has no code.
package deptest
