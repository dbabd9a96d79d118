package document

// Writers of an alias learn of a second index by aliases of their own, which are
// called as theirs with a suffix. Package reindex moves them.
const (
	AlsoSuffix    = ".also"    // every write goes to the index behind it, too
	DeletesSuffix = ".deletes" // deletions do
)
