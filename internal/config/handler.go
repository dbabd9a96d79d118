package config

import (
	"slices"
	"strings"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/router"
)

// handler is one of the kinds of handlers: the field of Route of its name. A file of
// that name has its struct, what can be wrong with it, and what it builds.
type handler interface {
	// check notes what is wrong with it, at path in the file. Tags of the struct say
	// what is wrong with a value alone.
	check(c *Config, path string, r *Route)
	// build makes what the route does, of a file in which check found no mistake. An
	// error is about path, unless it is an *Error.
	build(b *builder, path string, r *Route) (*built, error)
}

// conditional is a handler with conditions on items, beside the route's own.
type conditional interface {
	conditions() []condition
}

// condition is an expression over new, an item, at a field of the handler: ".only".
type condition struct{ field, text string }

// namedHandler is a handler by its name, or a place for one.
type namedHandler struct {
	name string
	handler
	set bool
}

// allHandlers has a line for each kind, in the order in which errors name them.
func (r *Route) allHandlers() []namedHandler {
	return []namedHandler{
		{"send", r.Send, r.Send != nil},
		{"project", r.Project, r.Project != nil},
		{"cascade", r.Cascade, r.Cascade != nil},
		{"count", r.Count, r.Count != nil},
		{"escalate", r.Escalate, r.Escalate != nil},
		{"log", r.Log, r.Log != nil},
	}
}

// handlers are those that the route has: one, unless the file is wrong.
func (r *Route) handlers() []namedHandler {
	return slices.DeleteFunc(r.allHandlers(), func(h namedHandler) bool { return !h.set })
}

// Kind is the name of the route's handler.
func (r *Route) Kind() string { return strings.Join(names(r.handlers()), " and ") }

// Kinds are the names of all handlers.
func Kinds() []string { return names(new(Route).allHandlers()) }

func names(handlers []namedHandler) (all []string) {
	for _, h := range handlers {
		all = append(all, h.name)
	}
	return all
}

// built is the handler of a route, and what goes with it.
type built struct {
	BuiltRoute
	handle  sluice.Handler
	options []router.Option // such as the images that it needs
	late    bool            // dead letters may be run again, unless the file says otherwise
	sends   []sending
	last    func() error // adds a route of its own, behind those of the file
}

// sending is messages of these kinds into a queue that field names. Without kinds
// they can be of any.
type sending struct {
	queue *queue
	field string
	kinds []string
}
