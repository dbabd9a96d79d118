// Package spanattr lets a sink describe its request in the span of a commit, without
// OpenTelemetry.
package spanattr

import "context"

// Set adds an attribute, with a name of OpenTelemetry's conventions. Several values
// are a list.
type Set func(name string, values ...string)

type key struct{}

// With returns a context that leads to set.
func With(ctx context.Context, set Set) context.Context { return context.WithValue(ctx, key{}, set) }

// From returns the Set of a commit's context; nil if the commit has no span.
func From(ctx context.Context) Set { set, _ := ctx.Value(key{}).(Set); return set }
