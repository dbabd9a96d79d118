// Package page shows a daemon to people in a browser, and to programs as JSON.
//
// The pages are made on the server and read without JavaScript; static/page.js only
// asks for them again every few seconds. Nothing comes from another host. A GET changes
// nothing. A change is a form of a page of its own, which says what it will do.
//
//	view.go     the shapes of the JSON API
//	page.go     paths, headers, who may change something
//	api.go      the JSON API
//	overview.go the first page: the worst first
//	shards.go   shards as a lineage
//	letters.go  dead letters: list and search, one letter
//	change.go   redrive and purge: confirm, then do
//	gaps.go     gaps: list, confirm, acknowledge
//	diff.go     the images of a record side by side
//	funcs.go    numbers, times and bars of the templates
//	spark.go    the last hour as a line
//
// The package knows the daemon by [Daemon] only. Whoever serves the handler checks who
// may read it.
package page
