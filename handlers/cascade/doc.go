// Package cascade deletes the children of a deleted item: the points of a map, the
// attempts of a search.
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
// queue. Work continues in messages of bounded time until no row is left. A minute
// later one sweep looks for rows written meanwhile.
//
// # Guarantees
//
// A cascade stores no position. It reads the keys of the children from the start
// and deletes them. It is done when a reading from the start finds nothing to
// delete. After a crash the record or the message comes again and continues with
// the remaining rows. Concurrent runs make the same deletes.
//
// The parent decides: if it exists again, the cascade stops. The cascade reads the
// parent consistently at the start and before each delete request, after the
// request's waiting for a budget, a throttle or other requests. It uses a response
// for 100 ms, and only for pages of keys read before it. So a deleted child was
// read before a moment at which its parent did not exist. One gap remains: a child
// put again under the same key can be deleted, if the request was sent within 100
// ms after the parent was put. [Limit] closes that gap with a condition on each
// delete.
//
// Only children are deleted: rows of the partition whose sort key has the prefix,
// if set. The parent's own row and excluded rows stay. A child found by an index
// is deleted on condition that it still belongs to the parent.
//
// An index lags behind its table. So a cascade along an index always ends with a
// sweep, even after Remove alone. A cascade in the table that Remove finished has
// no sweep: a child that is written later, without a check of its parent, stays.
// If you have such writers, set Threshold to 0.
//
// # Grandchildren
//
// The REMOVE records of the children cascade further through a route of their own:
//
//	r.Handle("user#REMOVE", users.Remove)
//	r.Handle("map#REMOVE", maps.Remove)
//	work, err := cascade.Worker(users, maps) // for the messages of both
//
// # Messages
//
// A message describes the remaining work. Equal work makes equal bytes:
//
//	{"kind":"cascade.delete","table":"points","key":{"map_id":"m-1"},"parent":{"table":"maps","key":{"user_id":"u-1","map_id":"m-1"}},"dedupeKey":"maps/u-1/m-1"}
//
// A string key is unchanged. A number is {"N":"7"}, binary is {"B":"…"} in base64,
// and the prefix of a sort key is {"begins_with":"MAP#1#"}. In the dedupeKey, "/",
// "#" and "%" of a value become %2F, %23 and %25; characters that a queue refuses
// are escaped too, such as %00. For a child kind with a Name, the dedupeKey ends
// with "#<name>" and a member "child" follows. For a sweep it ends with "#sweep"
// and "sweep":true follows. A limit is the member "notNewer", such as
// {"version":{"N":"7"}}.
//
// # Files
//
//	cascade.go   Config and New
//	target.go    the children of one parent: keys, queries, conditions
//	limit.go     children that are too new to delete
//	remove.go    Remove, for the records of parents
//	work.go      Work and Worker, for messages
//	body.go      encoding and decoding of messages
//	purge.go     reading and deleting until nothing is left
//	failures.go  handling of failed deletes
//	progress.go  progress and the log
//	metrics.go   metrics
//	plan.go      the dry run
package cascade
