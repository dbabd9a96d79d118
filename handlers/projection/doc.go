// Package projection keeps one document in a search index for every item of a
// kind:
//
//	p, err := projection.New(sink.Write, projection.Options{
//		Index:   "orders",
//		ID:      "{pk}|{sk}",
//		Version: projection.ByAttribute("rev"),
//		Exclude: []string{"internal"},
//	})
//	r.Handle("order#*", p.Handle, router.NeedsBoth(), router.Redrive())
//
// A new or changed item is written whole. The document of a deleted item is
// deleted, also after its time to live. If a change moves a document to another
// index, id or routing, the new document is written before the old one is deleted.
//
// # Templates
//
// Index, ID, Routing and [Text] are texts with attributes: `{owner}`, or in maps
// and lists `{address.city}`. Values come from the item, else from its keys.
// Functions follow, from left to right: `{pk|lower|replace:#:$|trim:x}`.
//
//	lower             lower case
//	replace:old:new   every old becomes new, which may be empty
//	trim:prefix       removes the prefix, if present
//
// A backslash escapes the next character: \{ \} \| \: \\. Values are texts,
// numbers (1, 1.0 and 1E0 are all 1) and binary (its base64).
//
// An id of one attribute is its value. In an id of several, the byte that ends a
// value, and '%', are escaped as %23 in the value. With `{a}#{b}`, the keys ("x#",
// "y") and ("x", "#y") make x%23#y and x##y. So different keys make different ids,
// unless functions make their values equal.
//
// # Versions
//
//	ByAttribute   number or time of it    writers must raise it, also over a deletion
//	ByEpoch       number that is a time   the same
//	….Then        pair with a counter     the counter begins anew with each item
//	ByFunc        computed of the item    the same
//	BySequence    of the stream           a mark in each document; deletions leave tombstones
//	Unversioned   none                    an older state stands while a stream is read again
//
// With a version, a repeated or late record changes nothing: the service refuses
// it, which counts as success. A deletion by attribute has the version of the old
// image plus 1. The service forgets deletions after index.gc_deletes (60 s). Set
// that above the longest time after which a record may come again, or keep a
// [Options.Tombstone].
//
// By sequence, a document has a mark that names its change: the creation time of
// the stream, and the sequence number. No document stays at an older change;
// docs/decisions/0011 says why. A backfilled item comes before all records. If its
// document differs, the item is read again and written right after the change that
// the document shows, so that later changes stay.
//
// # Skipped writes
//
// A change that does not change the document is skipped. The document keeps the
// version of its last write. No older record can win because of that: records
// between that write and the skipped one have the same document, and earlier ones
// are refused. So an audit must compare contents, not versions. Redriven, replayed
// and backfilled records are always written, because their predecessors are
// unknown. [Options.WriteUnchanged] writes every record.
//
// # Duplicate field names
//
// OpenSearch refuses a document with a duplicate field. Of several fields with one
// name, the first in this order is written: fields of First and Last, even if a
// document lacks them; attributes with that name; renamed ones, in the order of
// Rename; flattened ones, in the order of Flatten. [Options].Dropped reports the
// others.
//
// # Images
//
// The new image is always needed. The old image is needed for the version of a
// deletion by attribute or function, and if attributes besides the keys determine
// the place of a document. A record without it fails permanently; router.NeedsBoth
// detects that at the start.
package projection
