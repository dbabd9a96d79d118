// Package router decides which handlers a record goes to, by the type of the
// entity that changed and what happened to it:
//
//	r := router.New()
//	r.Handle("search#INSERT", openSearch)
//	r.Handle("search#MODIFY", notify, router.Changed("status"))
//	r.Handle("*#REMOVE", audit, router.ExcludeTTL(), router.Name("audit deletions"))
//
// # Patterns
//
// A pattern is a type, '#' and an event. The type is an exact name or `*`,
// which stands for every type and for records without one. The event is
// INSERT, MODIFY, REMOVE, SNAPSHOT, MESSAGE, or `*`, which stands for the first
// three: the records of a backfill and the messages of a queue reach only
// routes that write SNAPSHOT or MESSAGE out. The type of a message is the
// string "kind" of its body, whatever the resolver is. A type
// may itself hold '#'; the last '#' separates the event. It may not hold
// white space, which separates several patterns of one route, nor `*`.
//
// Every route that a record matches runs, in order of registration, and once
// even if several of its patterns match. A record that matches none is
// unrouted, which is no error; [Router.OnUnrouted] tells why. A message that no
// route is for fails permanently: a queue forgets what was taken from it.
//
// # Names
//
// A route's name stands in metrics, dead letters and logs, and is what tells
// routes apart: two routes may have the same pattern when they have different
// names. The default name is the patterns, joined with commas. A malformed
// pattern or option, and a name already taken, make [Router.Handle] panic with
// the file and line of the call and of the earlier registration;
// [Router.Add] returns the same as an error, for routes that come from a
// configuration.
//
// # Types
//
// A [Resolver] says of what type a record is: from an attribute (the default,
// `entityType`), a pattern over a key, the table, or a function; a [Chain]
// asks several. A record whose type attribute is no string fails permanently.
// Where only attributes tell the type, a route for one type needs the images
// that hold them; see [Attribute].
//
// # Filters
//
// Options such as [When], [Changed] and [ExcludeTTL] narrow a route. All of
// its filters must pass. A filter that compares images makes the route need
// them: [sluice.Route.Needs] says so to the source, and a record that comes
// without them all the same fails permanently rather than being taken for one
// that did not change.
//
// A deletion by TTL that a global table replicated from another Region carries
// no identity: there [ExcludeTTL] and [OnlyTTL] take it for a user's.
//
// # Who runs the routes
//
// A Router is a [sluice.Matcher]: a flow asks it for a record's routes and
// runs them under their limits. [Router.Dispatch] runs them at once and in
// order, for callers that have no flow.
package router
