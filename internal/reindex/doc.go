// Package reindex gives the index behind an alias a successor, with another
// mapping or another projection, while it is searched and written to.
//
// Writers write by a [Writer], always:
//
//	write, err := reindex.Writer{Write: sink.Write, Behind: cluster.Behind}.New()
//	p, err := projection.New(write, projection.Options{Index: "products", …})
//
// It looks up which index is behind the alias products, and which others want
// the writes, too: those behind products.also, and for deletions also those
// behind products.deletes. It goes by the answer for 10 seconds. A reindex moves
// these aliases, and needs to know no writer.
//
//	r := reindex.Reindex{Alias: "products", Cluster: cluster, Get: client.Get, Body: body, …}
//	comparison, err := r.Start(ctx)   // both indices are equal, and stay so
//	err = r.Swap(ctx, false)          // searches go to the new one
//	err = r.Rollback(ctx)             // or to the old one again
//	err = r.Finish(ctx, true)         // the old one is deleted
//
// # The steps
//
//   - products-000002 is made, with the alias products.deletes: from TTL later on,
//     every deletion is done in both indices.
//   - products.also takes its place: from TTL later on, every write is.
//   - The table is read, and written to the new index at the versions of its
//     items: what live writes have put there in a newer version stays.
//   - Counts and samples of the two are compared.
//   - The alias is swapped, in one request with products.also, which leads to the
//     old index then: whatever a writer knows of the two, it writes to both.
//   - products.also goes, and the old index.
//
// Why the deletions come first, and why nothing is left out, is in
// docs/decisions/0007. All state is in the cluster: the aliases, and a mark in
// the new index's mapping (_meta.sluice). A process that dies is followed by
// another that takes the same step again.
//
// A [Reindex] is one process at a time; two at once do no harm to documents, and
// one of them fails when it finds an alias elsewhere.
package reindex
