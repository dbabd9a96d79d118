// Package cascade deletes the children of an item that was deleted: the points
// of a map, the attempts of a search.
//
//	maps, err := cascade.New(cascade.Config{
//		Table: "maps", Key: []string{"user_id", "map_id"},
//		Children: []cascade.Child{{
//			Table: "points", Key: []string{"map_id", "point_id"},
//			Partition: cascade.Attr{Name: "map_id", From: "map_id"},
//		}},
//		Get: store.Get, Query: store.Query, Delete: store.DeleteGuarded,
//		Send:      queue.Send,
//		Threshold: cascade.DefaultThreshold,
//	})
//	r.Handle("map#REMOVE", maps.Remove, router.Redrive())
//	r.Handle("cascade.delete#MESSAGE", maps.Work)
//
// Remove deletes up to Threshold rows itself and hands a larger cascade to a
// queue. Work goes on from there, in messages of bounded time, until nothing is
// left, and has one sweep a minute later look for what was written meanwhile.
//
// # What may be relied upon
//
// A cascade keeps no position. It reads the keys of the children from the
// start, deletes them, and is done when a reading from the start finds nothing
// to delete. Whatever crashes, the record or the message comes again and begins
// with what is left. Two that run at once do the same deletes.
//
// The parent decides: when it exists again, nothing more is deleted. The cascade
// reads the parent, consistently, at the start, and before each request that
// deletes: after the request's wait for a budget, a throttle or other requests. An
// answer is used for 100 ms, and only for pages of keys that were read before. So
// a child that is deleted was read before a moment at which its parent was not
// there. A child that is put again under the same key can still go, if its request
// was sent within 100 ms after the parent was put. [Limit] closes that gap with a
// condition of each delete.
//
// Only children are deleted: rows of the partition, whose sort key has the
// prefix, if one is set; never the parent's own row, nor what Exclude names. A
// child that an index has led to is deleted on condition that it still belongs to
// the parent.
//
// An index lags behind its table. So a cascade along an index always ends with
// a sweep, also one that Remove made itself. One in the table itself that
// Remove made has none: a child that is written later, without looking at its
// parent, stays. Who has such writers sets Threshold to 0.
//
// # Grandchildren
//
// The children's own REMOVE records cascade further by a route of their own:
//
//	r.Handle("user#REMOVE", users.Remove)
//	r.Handle("map#REMOVE", maps.Remove)
//	work, err := cascade.Worker(users, maps) // for the messages of both
//
// # Messages
//
// A message says what is left to do, and its bytes depend on nothing but that:
//
//	{"kind":"cascade.delete","table":"points","key":{"map_id":"m-1"},"parent":{"table":"maps","key":{"user_id":"u-1","map_id":"m-1"}},"dedupeKey":"maps/u-1/m-1"}
//
// A string key stands as it is; a number is {"N":"7"}, binary {"B":"…"} in
// base64, the prefix of a sort key {"begins_with":"MAP#1#"}. In the dedupeKey a
// "/", "#" or "%" of a value is written as %2F, %23 or %25, and so is what a
// queue refuses, such as %00. The message of a child kind with a Name ends its dedupeKey with "#<name>" and has a member
// "child" behind it; a sweep's ends with "#sweep" and has "sweep":true. A limit is
// the member "notNewer", such as {"version":{"N":"7"}}.
//
// # Files
//
//	cascade.go   Config and New
//	target.go    the children of one parent: keys, queries, conditions
//	limit.go     which children are too new to go
//	remove.go    Remove, for the records of parents
//	work.go      Work and Worker, for messages
//	body.go      messages, to and from
//	purge.go     reading and deleting until nothing is left
//	failures.go  what becomes of deletes that fail
//	progress.go  progress and the log
//	metrics.go   what is counted
//	plan.go      the dry run
package cascade
