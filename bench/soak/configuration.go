//go:build unix

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
)

// Tables, queue and index.
const (
	itemsTable   = "soak-items"
	parentsTable = "soak-parents"
	markersTable = "soak-markers"
	queueName    = "soak-changes"
	indexName    = "soak-items"
)

// routes are those of the configuration.
var routes = []string{"send", "project", "count"}

// configuration is what the daemon runs.
const configuration = `
name: soak
source: {tables: [soak-items], start: TRIM_HORIZON}
sinks:
  changes: {sqs: {queue: soak-changes}}
  search: {opensearch: {urls: ["${SLUICE_ENDPOINT_OPENSEARCH}"]}}
routes:
  - {name: send, on: item#*, send: {to: changes}}
  - {name: project, on: item#*, project: {index: soak-items, id: '{pk}', version: 'attribute:rev'}}
  - name: count
    on: item#*
    count:
      id: soak
      markers: soak-markers
      numbers:
        - {table: soak-parents, attribute: items, key: [parent]}
        - {table: soak-parents, attribute: total, key: [parent], of: amount}
`

// change is the text for one change: the revision is that of the new item, or of
// the old one when it was deleted.
func change(event, id string, rev int64) string { return fmt.Sprintf("%s %s %d", event, id, rev) }

// readChange reads it from a message's body, which is the whole record.
func readChange(body string) (string, error) {
	var m struct {
		Event    string
		New, Old *struct {
			PK  string
			Rev int64
		}
	}
	if err := json.Unmarshal([]byte(body), &m); err != nil {
		return "", fmt.Errorf("message %q: %w", body, err)
	}
	image := cmp.Or(m.New, m.Old)
	if image == nil || m.Event == "" {
		return "", fmt.Errorf("message %q has no event or no image", body)
	}
	return change(m.Event, image.PK, image.Rev), nil
}
