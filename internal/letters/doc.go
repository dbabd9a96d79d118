// Package letters is how people and HTTP see dead letters: short ids, filters as the
// parameters of a URL, and outlines of entries.
package letters
