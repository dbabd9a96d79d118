// Package opensearch writes documents to an OpenSearch cluster, in bulk
// requests that many callers share.
//
//	client, err := opensearch.Connect(opensearch.Connection{URLs: []string{"https://search.example.com:9200"}})
//	sink, err := opensearch.New(client, opensearch.Options{})
//	err = sink.Write(ctx, document.Op{Action: document.Put, Index: "searches", ID: "s-1", Body: body})
//
// A Write that returned nil is durable, or something newer is there.
// docs/opensearch.md tells what the cluster needs for it. [Client.Call] makes
// any other request of its REST API.
//
// # Order and versions
//
// Writes of one document follow one another in the order of the calls: one that
// begins while another is on its way is sent once that has its result. Those
// that wait for the same request are sent as one, the last of them; or, with a
// Fence, the one with the greatest version. Superseded ones have its success,
// and are sent after all when it can never be written. A document is named by
// Index, ID and Routing: under an alias and under the name of its index it is
// two.
//
// Between processes, and between a write and its repetition after others, only
// a Fence keeps the order.
//
// # Failures
//
// What can never be written (a document that the mapping refuses, an ID of more
// than 512 bytes, a request too large for the cluster) is a sluice.Permanent
// error, and spoils no request: the others are written without it. What the
// cluster refuses for the moment (429, 5xx, a blocked index), or a request
// without an answer, is written again with backoff until Timeout, and the others
// of the request do not wait for it; what then remains is an ordinary error that
// the flow retries, sluice.Overloaded if the last answer was a refusal for load.
// Everything else (no such
// index, no permission) is an ordinary error at once: it is the cluster or the
// configuration that has to be mended, not the document.
//
// A write may be done twice: an answer can be lost after the cluster has done
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
// The number lets a reindex make a successor. What is there stays as it is: if it
// differs from its file, [Indices.Apply] returns a [*DifferentError] with the file,
// the index and the first path that differs, dynamically mapped fields aside.
//
// Two settings have defaults that a file can change. index.gc_deletes is 1 hour:
// for that long OpenSearch knows the version of a deleted document, and a record
// that is redelivered later could restore it. index.mapping.total_fields.limit is
// 1000: every node keeps all fields of a dynamic mapping in memory.
package opensearch
