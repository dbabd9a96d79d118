// Package runtimeapi replaces the Lambda service for one function process: a small
// HTTP server that implements the Runtime API on a loopback address, and a starter
// that runs a built binary against it.
//
// The process requests /runtime/invocation/next, gets an event with a request id
// and a deadline, and posts to /{id}/response or /{id}/error. As on Lambda, a
// process that misses its deadline is killed, and a process that exits early fails
// the invocation. SIGTERM comes only to a process that registered for it.
//
//	fn, err := runtimeapi.Start(ctx, runtimeapi.Command{Path: "./bootstrap"})
//	…
//	answer, err := fn.Invoke(ctx, event, 3*time.Second)
//	…
//	state, err := fn.Stop()
package runtimeapi
