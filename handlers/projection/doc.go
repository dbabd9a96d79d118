// Package projection keeps a document in a search index for every item of a
// kind.
package projection
