// Package audit compares a table with the index of its items' documents while both
// are written, and repairs differences on request.
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
// the item's, and a lower version. [Different]: the versions are equal or absent,
// and the bodies differ. [Ghost]: a document has no item, or one that must not
// have a document. [Ahead]: the document has a higher version than the item, such
// as after a restore of the table; no repair can decide, so none is tried. A lower
// version with the right body is not drift: a projection does not write a change
// that leaves the document as it was.
//
// Bodies are equal if their bytes are, or if they are the same JSON: the order of
// members and the spelling of numbers do not matter (1, 1.0 and 10e-1 are equal,
// and no digit is dropped).
//
// # Live writes
//
// A single difference proves little: the record of the last change may still be
// under way. So each difference is checked again Settle later: first the document,
// then the item by its key, consistently. It is drift if neither has changed in
// between. It is also drift if the document has not changed and is older than the
// item of the look before. A pair that changes at every look is reported as busy
// after Attempts looks. This is right while Settle exceeds the time from a change
// in the table to the index. While a route fails, or records wait among the dead
// letters, their missing writes are drift. A repair writes them, and the records
// find them later.
//
// # Ghosts
//
// A whole audit looks for ghosts: documents of the index that no scanned item
// names. The scan keeps 8 bytes per document in memory (a hash with a random key).
// In an index of a billion documents, the chance to miss one ghost of a million is
// 1 in 20,000. An unseen document may belong to an item written since, so the
// table is scanned again for these documents only, for up to 100,000 of them in one
// run. There is no second scan while items cannot be projected, because their
// documents are unknown.
//
// An index may have documents of others. Documents that Project returns are known,
// under any name of the index (Behind). [Audit.Foreign] tells which of the rest
// belong to another application.
//
// # Repair
//
// A repair from the wrong table would write its items into the index, and delete
// all existing documents as ghosts. So a run with Write first checks whether the
// two belong together. It reads items until it has the names of 1,000 of their
// documents, of all tables or of a part of one. If the index has at least half of
// the documents of each table, or no document at all, the repair begins. Otherwise
// the run first compares everything without a write. It ends with an [*ApartError]
// if more documents lack an item than documents of the table were found. Only
// names are compared: a copy of the table looks like the table. A run that does
// not look for ghosts, such as a sample, ends after the first part.
// [Audit.TrustTables] skips all this.
//
// With Write set, confirmed drift is repaired right after the reads that confirmed
// it, and read again. Ghosts are deleted at the end of the run, and only if they
// are not too many ([Audit.MaxDeletes]). If the index then has another state,
// because it was newer or because it refuses the write, the drift is reported as
// refused. No repair can undo a newer write:
//
//   - A document is written at its item's version ([document.NewerOrEqual]), with an item read after the document.
//   - If items have no version of their own, it is written at the version that the document had. A change in between makes
//     the index refuse the repair, and a later change is newer.
//   - A ghost is deleted at its own version: if the item is written again, it is newer.
package audit
