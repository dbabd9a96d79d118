// Package runtimeapi stands in for the Lambda service towards one function
// process: a small HTTP server that speaks the Runtime API on a loopback
// address, and a starter that runs a built binary against it.
//
// The process asks for /runtime/invocation/next, gets an event with a request
// id and a deadline, and posts to /{id}/response or /{id}/error. As on Lambda,
// a process that misses its deadline is killed, one that exits in the middle
// fails the invocation, and SIGTERM comes only to a process that registered
// for it.
//
//	fn, err := runtimeapi.Start(ctx, runtimeapi.Command{Path: "./bootstrap"})
//	…
//	answer, err := fn.Invoke(ctx, event, 3*time.Second)
//	…
//	state, err := fn.Stop()
package runtimeapi
