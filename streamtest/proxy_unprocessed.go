package streamtest

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync/atomic"
)

// Unprocessed returns a fault of BatchWriteItem: it withholds a share of each
// request's writes, drawn from seed, and returns them in UnprocessedItems, like a
// table without enough throughput. Like DynamoDB it does at least one write.
func Unprocessed(share float64, seed uint64) ProxyFault {
	var requests atomic.Uint64
	return ProxyFault{Op: "BatchWriteItem", Rewrite: func(request []byte, send func([]byte) (int, []byte)) []byte {
		draw := rand.New(rand.NewPCG(seed, requests.Add(1)))
		reduced, held := hold(request, func() bool { return draw.Float64() < share })
		status, answer := send(reduced)
		if status != http.StatusOK || len(held) == 0 {
			return answer
		}
		return giveBack(answer, held)
	}}
}

// writes is the writes of a BatchWriteItem request, by table.
type writes map[string][]json.RawMessage

// hold removes the writes selected by drawn from the request, but leaves one.
func hold(request []byte, drawn func() bool) (reduced []byte, held writes) {
	var members map[string]json.RawMessage
	var all writes
	if json.Unmarshal(request, &members) != nil || json.Unmarshal(members["RequestItems"], &all) != nil {
		return request, nil // the server reports the mistake
	}
	pass := writes{}
	held = writes{}
	for _, table := range slices.Sorted(maps.Keys(all)) {
		for _, w := range all[table] {
			if drawn() {
				held[table] = append(held[table], w)
			} else {
				pass[table] = append(pass[table], w)
			}
		}
	}
	if len(pass) == 0 && len(held) > 0 {
		table := slices.Sorted(maps.Keys(held))[0]
		pass[table] = held[table][:1]
		if held[table] = held[table][1:]; len(held[table]) == 0 {
			delete(held, table)
		}
	}
	return replaced(request, members, "RequestItems", pass), held
}

// giveBack adds writes to a response's UnprocessedItems.
func giveBack(answer []byte, held writes) []byte {
	var members map[string]json.RawMessage
	if json.Unmarshal(answer, &members) != nil {
		return answer
	}
	var unprocessed writes
	if old := members["UnprocessedItems"]; old != nil && json.Unmarshal(old, &unprocessed) != nil {
		return answer
	}
	if unprocessed == nil {
		unprocessed = writes{}
	}
	for table, ws := range held {
		unprocessed[table] = append(unprocessed[table], ws...)
	}
	return replaced(answer, members, "UnprocessedItems", unprocessed)
}

// replaced returns the document with one member replaced.
func replaced(document []byte, members map[string]json.RawMessage, name string, value writes) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		return document
	}
	members[name] = text
	out, err := json.Marshal(members)
	if err != nil {
		return document
	}
	return out
}
