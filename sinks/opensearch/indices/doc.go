// Package indices looks after what documents are kept in: index templates,
// indices with their mappings, and the aliases before them.
//
//	cluster := indices.New(client)
//	err := cluster.Apply(ctx, os.DirFS("search"), indices.Options{})
//
// makes what the files say, where it is not there yet:
//
//	search/templates/education.json    an index template, as for PUT _index_template/education
//	search/indices/products.json       {"settings": …, "mappings": …} of an index behind the alias products
//
// The index is called products-000001, so that package reindex can give it a
// successor. Nothing that is there is ever changed: when it is not as its file
// says, Apply returns a [*DifferentError] that names the file, the index and the
// first path at which the two part. Fields that a dynamic mapping has added since
// are no difference.
//
// # What is set unless a file says otherwise
//
// index.gc_deletes is 1 hour. OpenSearch remembers for that long which version a
// deleted document had; a record that is delivered later than that, and is older
// than the deletion, makes the document anew. So it is to be longer than any
// record is under way, with retries.
//
// index.mapping.total_fields.limit is 1000: a dynamic mapping takes a field for
// each name that documents come with, and every node keeps all of them in memory.
package indices
