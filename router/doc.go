// Package router selects the handlers of a record by the type of the changed
// entity and the kind of change:
//
//	r := router.New()
//	r.Handle("search#INSERT", openSearch)
//	r.Handle("search#MODIFY", notify, router.Changed("status"))
//	r.Handle("*#REMOVE", audit, router.ExcludeTTL(), router.Name("audit deletions"))
//
// # Patterns
//
// A pattern is a type, '#' and an event. The type is an exact name or `*`, which
// matches every type and records without a type. The event is INSERT, MODIFY,
// REMOVE, SNAPSHOT, MESSAGE, or `*`, which matches the first three. Backfill
// records and queue messages reach only routes that write SNAPSHOT or MESSAGE out.
// The type of a message is the string "kind" of its body, whatever the resolver
// is. A type may contain '#'; the last '#' separates the event. It may not contain
// `*` or white space, which separates several patterns of one route.
//
// Every route that a record matches runs, in order of registration, and once
// even if several of its patterns match. A record that matches none is
// unrouted, which is no error; [Router.OnUnrouted] tells why. A message that no
// route is for fails permanently: a queue forgets what was taken from it.
//
// # Names
//
// A route's name identifies it, and appears in metrics, dead letters and logs. Two
// routes may have the same pattern if their names differ. The default name is the
// patterns, joined with commas. [Router.Handle] panics on a malformed pattern or
// option, and on a duplicate name. The panic has the file and line of the call and
// of the earlier registration. [Router.Add] returns the same as an error, for
// routes from a configuration.
//
// # Types
//
// A [Resolver] returns the type of a record: from an attribute (the default,
// `entityType`), a pattern over a key, the table, or a function. A [Chain] asks
// several. A record whose type attribute is not a string fails permanently. If
// only attributes tell the type, a route for one type needs the images that
// contain them; see [Attribute].
//
// # Filters
//
// Options such as [When], [Changed] and [ExcludeTTL] narrow a route. All filters
// of a route must pass. A filter that compares images adds them to
// [sluice.Route.Needs], which tells the source. A record that still lacks an image
// fails permanently, so that it does not count as unchanged.
//
// Options given to [New] apply to every route.
//
// A deletion by TTL that a global table replicated from another Region carries no
// identity: there [ExcludeTTL] and [OnlyTTL] take it for a user's.
//
// # Running the routes
//
// A Router is a [sluice.Matcher]: a flow asks it for a record's routes and runs
// them under their limits. [Router.Dispatch] runs them at once and in order, for
// callers without a flow.
package router
