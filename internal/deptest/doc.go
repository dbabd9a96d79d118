// Package deptest holds the tests over the module's own files: who imports
// whom, and what a Lambda function links. It has no code.
package deptest
