// Package projection keeps a document in a search index for every item of a
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
// An item that is made or changed is written whole, one that is deleted, also by
// its time to live, is deleted. When a change moves a document to another index,
// id or routing, the new one is written and then the old one deleted.
//
// # Templates
//
// Index, ID, Routing and [Text] are texts with attributes in them: `{owner}`, or
// within maps and lists `{address.city}`, taken from the item, else from its
// keys. Functions follow, from left to right: `{pk|lower|replace:#:$|trim:x}`.
//
//	lower             in lower case
//	replace:old:new   every old becomes new, which may be empty
//	trim:prefix       without the prefix, where there is one
//
// A backslash takes the character after it as it is: \{ \} \| \: \\. Values are
// texts, numbers (1, 1.0 and 1E0 are all 1) and binary (its base64).
//
// An id of one attribute is its value. In an id of several, the byte that tells
// where a value ends, and '%', are written as %23 within it: of `{a}#{b}`, the
// keys ("x#", "y") and ("x", "#y") make x%23#y and x##y. So no two keys make one
// id, unless functions make their values equal.
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
// With a version, what is delivered again or late changes nothing: the service
// refuses it, and that is success. A deletion by attribute has the version of the
// old image plus 1. The service forgets deletions after index.gc_deletes (60 s):
// set that above the longest time in which a record may come again, or keep a
// [Options.Tombstone].
//
// By sequence, a document has a mark that says which change it shows: the time at
// which the stream was made, and the sequence number. No document is ever left at
// an older change: docs/decisions/0011 says why. What a backfill reads comes before
// all records. Where its document differs, the item is read again and written right
// after the change that the document shows, so that later changes stay.
//
// # What is not written
//
// A change that leaves the document as it was is skipped. The document then stays
// at the version of its last write. No older record can win by that: those
// between that write and the one that was skipped have the same document, and
// those before it are refused. So compare contents and not versions in an audit.
// Records that are redriven, replayed or backfilled are always written, since
// what they follow is not known; [Options.WriteUnchanged] writes all.
//
// # One field of a name
//
// OpenSearch refuses a document that has a field twice. Of several fields of one
// name stands the first of: those of First and Last, even where the document does
// not have them; attributes that are called so; renamed ones, in the order of
// Rename; flattened ones, in the order of Flatten. [Options].Dropped tells of the
// others.
//
// # Images
//
// The new image is always needed. The old one is needed for a version by
// attribute or function of what is deleted, and where other attributes than the
// keys name the place of a document. A record without it fails for good;
// router.NeedsBoth notices at the start.
package projection
