// Package router decides which handlers a record goes to: by its entity type
// and what happened to it, `search#INSERT`.
package router

import (
	"context"

	"github.com/sluicehq/sluice"
)

// Router is a table of routes. Register first, then use: Handle must not be
// called once Match or Dispatch has been. It implements sluice.Matcher.
type Router struct{}

// New returns an empty router that takes the entity type from the attribute
// `entityType` unless an option says otherwise.
func New(opts ...RouterOption) *Router { return &Router{} }

type RouterOption func(*Router)

// Option configures one route.
type Option func(*sluice.Route)

// Handle registers h under one or several space-separated patterns.
func (r *Router) Handle(patterns string, h sluice.Handler, opts ...Option) {}

func (r *Router) Match(dst []*sluice.Route, rec *sluice.Record) ([]*sluice.Route, error) {
	return dst, nil
}
func (r *Router) Routes() []*sluice.Route { return nil }

// Dispatch runs every route that rec takes, in order of registration, and
// returns nil, the outcome of the only route, or a *sluice.Remaining.
func (r *Router) Dispatch(ctx context.Context, rec *sluice.Record) error { return nil }
