// Package opensearch writes documents to an OpenSearch cluster, in bulk requests
// that many callers share.
//
//	client, err := opensearch.Connect(opensearch.Connection{URLs: []string{"https://search.example.com:9200"}})
//	sink, err := opensearch.New(client, opensearch.Options{})
//	err = sink.Write(ctx, document.Op{Action: document.Put, Index: "searches", ID: "s-1", Body: body})
//
// A Write that returned nil is durable, or the index has a newer state.
// docs/opensearch.md describes the requirements of the cluster. [Client.Call]
// makes any other request of its REST API.
//
// # Order and versions
//
// Writes of one document keep the order of the calls: the next is sent once the
// previous has its result. Of the writes that wait for the same request, only the
// last is sent; with a Fence, the one with the greatest version. Superseded writes
// share its success. If it can never be written, they are sent after all. Index,
// ID and Routing identify a document: the name of an alias and the name of its
// index make two.
//
// Only a Fence keeps the order between processes, and between a write and its
// retry after other writes.
//
// # Failures
//
// An impossible write is a sluice.Permanent error: the mapping refuses the
// document, the ID has more than 512 bytes, or the request is too large for the
// cluster. The other writes of its request are sent without it. A temporary
// refusal (429, 5xx, a blocked index), or a request without a response, is retried
// with backoff until Timeout, and the other writes do not wait for it. What
// remains is an ordinary error that the flow retries. It is sluice.Overloaded if
// the last response was a refusal for load. Every other failure (no such index, no
// permission) is an ordinary error at once: repair the cluster or the
// configuration, not the document.
// it. Without a Fence, that raises its version and changes nothing else.
//
// # Load
//
// At most [Options].InFlight requests run at a time. Fewer run, and no smaller
// ones, while the cluster refuses some for load or answers much more slowly than
// before. Calls wait when [Options].WaitBytes are on their way.
//
// # Indices
//
// [Client.Indices] makes index templates, indices and aliases of the files in a
// folder, where they are not there yet:
//
//	search/templates/education.json    an index template, as for PUT _index_template/education
//	search/indices/products.json       {"settings": …, "mappings": …} of the index products-000001 behind the alias products
//
// The number lets a reindex make a successor. Apply changes no existing index: if
// one differs from its file, the error of [Indices.Apply] has the file, the index and
// the first path that differs, dynamically mapped fields aside.
//
// Two settings have defaults that a file can change. index.gc_deletes is 1 hour:
// for that long OpenSearch knows the version of a deleted document, and a record
// that is redelivered later could restore it. index.mapping.total_fields.limit is
// 1000: every node keeps all fields of a dynamic mapping in memory.
package opensearch
