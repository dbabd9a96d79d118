package main

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/config"
)

// ofTables is the routes of a file for the tables and queues of the file. A dead
// letter of another application may name a route as this one does: it would be
// handled by the wrong one, and deleted.
type ofTables struct {
	sluice.Matcher
	app  *config.App
	file string
}

// Match implements [sluice.Matcher].
func (m ofTables) Match(dst []*sluice.Route, rec *sluice.Record) ([]*sluice.Route, error) {
	what, key, known := "table", "source.tables", m.app.Tables
	if rec.EventName == sluice.Delivery {
		what, key, known = "queue", "source.queues", m.app.Queues
	}
	// Of an ARN its table, of a URL its queue. What names none takes all, as a
	// function does, which is not asked what it reads.
	if rec.Table != "" && len(known) > 0 && !slices.ContainsFunc(known, func(name string) bool { return path.Base(tableName(name)) == rec.Table }) {
		return dst, sluice.Permanent(fmt.Errorf("%s %s is none of %s (%s): name the configuration that the dead letter is of by --config, or write the %s under %s", what, rec.Table, m.file, strings.Join(known, ", "), what, key))
	}
	return m.Matcher.Match(dst, rec)
}
