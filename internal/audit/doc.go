// Package audit compares a table with the index that its items are projected
// into, while both are written to, and repairs what differs when asked.
//
//	a := audit.Audit{
//		Scan:    func(ctx context.Context) iter.Seq2[*sluice.Record, error] { return snapshot.Scan(ctx, cfg, "products", …) },
//		Project: projection.Project,
//		Read:    store.Get,
//		Get:     client.Get,
//		List:    client.ListIDs,
//		Found:   func(d audit.Drift) { fmt.Println(d) },
//	}
//	result, err := a.Run(ctx)
//
// # Five kinds of drift
//
// [Missing]: an item has no document. [Stale]: the document has another body than
// the item asks for, and a lower version. [Different]: the versions are equal, or
// there are none, and the bodies are not. [Ghost]: a document has no item, or one
// that is not to be projected. [Ahead]: the document has a higher version than the
// item, such as after a restore of the table; no repair can tell who is right, so
// none is tried. A lower version with the right body is no drift: a projection
// writes no change that leaves the document as it was.
//
// Bodies are equal when their bytes are, or else when they are the same JSON:
// whatever the order of members, and whatever the spelling of a number (1, 1.0
// and 10e-1 are one number, and no digit is dropped).
//
// # Live writes
//
// A difference that is seen once says little: the record of the last change may
// still be under way. So each is looked at again, Settle later: the document
// first, then the item by its key, consistently. It is drift when neither has
// changed in between, or when the document has not, and is older than the item
// was at the look before. What changes at every look is told as busy after Attempts of
// them. This is right as long as Settle is longer than a change takes from the
// table to the index: while a route fails, or records wait among the dead
// letters, what they have not written yet is drift, which a repair writes and
// their records then find in place.
//
// # Ghosts
//
// Whole audits look for ghosts: every document of the index whose name no item of
// the scan gave. The scan leaves 8 bytes a document in memory (a hash under a
// random key; that one ghost of a million is overlooked, in an index of a
// billion documents, has a chance of 1 in 20,000). A document that was not seen
// may be that of an item written since: KeyOf leads from it to its item, which is
// read; without KeyOf the table is scanned again, for these documents only.
//
// An index may have documents of others. Those that Project returns are known, by
// whichever name of the index (Behind). [Audit.Foreign] tells which of the rest
// are another application's.
//
// # Repair
//
// A repair of the wrong table would write its items into the index, and take all
// documents that are there for ghosts. So a run with Write first looks whether the
// two belong together. It reads items until it has the names of 1,000 of their
// documents, of all tables or of a part of one. If the index has at least half of
// the documents of each table, or no document at all, the repair begins. If not,
// the run first compares everything without a write. It ends with an [*ApartError]
// if the documents without an item are more than those of the table that were found.
// Only names are compared: a copy of the table is like the table. A run that looks
// for no ghosts, a sample for instance, ends after the first part.
// [Audit.TrustTables] leaves all this out.
//
// With Write set, what is confirmed as drift is repaired right after the reads
// that confirmed it, and read again. Ghosts are deleted at the end of the run, and
// only when they are not too many ([Audit.MaxDeletes]). What the index then holds in
// its place, because it was newer or because it refuses, is told as refused. No
// repair can undo a newer write:
//
//   - A document is written at its item's version ([document.NewerOrEqual]),
//     with the item as it was read after the document was.
//   - When items have no version of their own, it is written at the version that
//     the document had: a change that comes in between makes the index refuse
//     the repair, and one that comes later is newer than it.
//   - A ghost is deleted at its own version: the item, written anew, is newer.
package audit
