package config

import (
	"slices"
	"strings"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/router"
)

// handler is a kind of handler: the field of Route with its name. The file with that
// name has its struct, its checks and its build.
type handler interface {
	// check notes mistakes, at path in the file. The tags of the struct check single
	// values.
	check(c *Config, path string, r *Route)
	// build makes the route's handler. check has found no mistake in the file. An error
	// is about path, unless it is an *Error.
	build(b *builder, path string, r *Route) (*built, error)
}

// condition is an expression at a field of its route, such as ".project.only", over
// variables with these names.
type condition struct {
	field, text string
	names       []string
}

// conditions returns those of the route and of its handlers.
func (r *Route) conditions() []condition {
	all := []condition{{".when", r.When, whenNames}}
	if r.Project != nil {
		all = append(all, condition{".project.only", r.Project.Only, itemNames})
	}
	if r.Count != nil {
		for i, n := range r.Count.Numbers {
			all = append(all, condition{element(".count.numbers", i) + ".when", n.When, itemNames})
		}
	}
	return all
}

// namedHandler is a kind and its field of a route; set: the route has the field.
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

// handlers returns the handlers of the route: one, unless the file is wrong.
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

// built is the handler of a route, with its options, effects and checks.
type built struct {
	BuiltRoute
	handle  sluice.Handler
	options []router.Option // such as the images that the handler needs
	late    bool            // the default of redrive
	sends   []sending
}

// sending is a queue, named by field, that gets messages of these kinds. Without kinds,
// the messages may have any kind.
type sending struct {
	queue *queue
	field string
	kinds []string
}
