package daemon

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/holders"
)

// lane is an item whose changes wait, as the API shows it.
type lane struct {
	holders.Item
	age time.Duration
}

func laneOf(source, table, shard string, h flow.Held) lane {
	return lane{holders.Item{
		Source: source, Table: table, Shard: shard, Sequence: string(h.Sequence), Key: fmt.Sprintf("%016x", h.KeyHash), Route: h.Route, Attempts: h.Attempts,
		AgeSeconds: h.Age.Seconds(), Bytes: h.Bytes, Stuck: h.Stuck, Error: plain(h.Err),
	}, h.Age}
}

func items(lanes []lane) []holders.Item {
	all := make([]holders.Item, len(lanes))
	for i, l := range lanes {
		all[i] = l.Item
	}
	return all
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	_ = e.Encode(v) // the client may have gone
}
