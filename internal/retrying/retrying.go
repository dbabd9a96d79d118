// Package retrying lets a sink tell the caller of a handler that a call failed and
// that the sink itself retries it. Otherwise nobody learns of a failure before the
// sink gives up, which can take a minute.
package retrying

import "context"

// Listener learns of failures. It is safe for concurrent use, is fast and does not
// block.
type Listener interface {
	// Retrying is called before each further try with the error of the last one.
	Retrying(err error)
}

type key struct{}

// Context carries Listener to sinks. It is a struct, so that it can be part of
// another one and takes no memory of its own.
type Context struct {
	context.Context
	Listener Listener
}

// Value returns the listener to From, and the inner context's value otherwise.
func (c *Context) Value(k any) any {
	if k == (key{}) {
		return c.Listener
	}
	return c.Context.Value(k)
}

// With returns a context that carries l to sinks.
func With(ctx context.Context, l Listener) context.Context { return &Context{ctx, l} }

// From returns the listener of ctx, or nil.
func From(ctx context.Context) Listener { l, _ := ctx.Value(key{}).(Listener); return l }
