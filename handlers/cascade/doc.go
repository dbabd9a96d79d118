// Package cascade deletes the children of an item that was deleted: the points
// of a map, the attempts of a search.
//
//	maps, err := cascade.New(cascade.Config{
//		Table: "maps", Key: []string{"user_id", "map_id"},
//		Children: []cascade.Child{{
//			Table: "points", Key: []string{"map_id", "point_id"},
//			Partition: cascade.Attr{Name: "map_id", From: "map_id"},
//		}},
//		Get: store.Get, Query: store.Query, DeleteAll: store.DeleteAll,
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
// The parent decides: when it exists again, nothing more is deleted. That is
// looked at, consistently, at the start and after each page of keys was read,
// before the first of them is deleted, and once more for deletes that start
// more than a second later. So a child that is deleted was written before a
// moment at which its parent was not there; what can still go after the parent
// is back is what was on its way.
//
// Only children are deleted: rows of the partition, whose sort key has the
// prefix, if one is set; never the parent's own row, nor what Exclude names. A
// child that an index has led to is read again by its key, consistently, and
// deleted if it still belongs to the parent. (Between that and the delete are
// milliseconds in which it can move away; the delete has no condition.)
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
// "child" behind it; a sweep's ends with "#sweep" and has "sweep":true.
//
// # Files
//
//	cascade.go   Config and New
//	target.go    the children of one parent: keys, queries
//	remove.go    Remove, for the records of parents
//	work.go      Work and Worker, for messages
//	body.go      messages, to and from
//	purge.go     reading and deleting until nothing is left
//	failures.go  what becomes of deletes that fail
//	progress.go  hooks and the log
//	plan.go      the dry run
package cascade
