//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// cascadeService answers as DynamoDB does for one partition of a table
// "points": every call takes a time.
type cascadeService struct {
	took time.Duration

	mu    sync.Mutex
	gone  []bool // by number of the row
	left  int
	calls int
}

// perPage is how many rows 1 MB has, of 200 bytes each.
const perPage = 5000

func newCascadeService(rows int, took time.Duration) *cascadeService {
	return &cascadeService{took: took, gone: make([]bool, rows), left: rows}
}

type rowKey map[string]map[string]string

func (k rowKey) number() int {
	n, err := strconv.Atoi(strings.TrimPrefix(k["point_id"]["S"], "p-"))
	if err != nil {
		return -1
	}
	return n
}

func rowJSON(n int) string {
	return fmt.Sprintf(`{"map_id":{"S":"m-1"},"point_id":{"S":"p-%08d"}}`, n)
}

func (s *cascadeService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Limit             int
		ExclusiveStartKey rowKey
		Key               rowKey
		RequestItems      map[string][]struct {
			DeleteRequest struct{ Key rowKey }
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	time.Sleep(s.took)
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	_, action, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	switch action {
	case "GetItem": // the parent is gone
		fmt.Fprint(w, `{}`)
	case "Query":
		from := 0
		if in.ExclusiveStartKey != nil {
			from = in.ExclusiveStartKey.number() + 1
		}
		fmt.Fprint(w, s.page(from, in.Limit))
	case "DeleteItem": // the condition holds for all
		s.remove(in.Key)
		fmt.Fprint(w, `{"ConsumedCapacity":{"TableName":"points","CapacityUnits":1}}`)
	case "BatchWriteItem":
		for _, write := range in.RequestItems["points"] {
			s.remove(write.DeleteRequest.Key)
		}
		fmt.Fprintf(w, `{"UnprocessedItems":{},"ConsumedCapacity":[{"TableName":"points","CapacityUnits":%d}]}`, len(in.RequestItems["points"]))
	default:
		http.Error(w, "no such action: "+action, http.StatusBadRequest)
	}
}

// remove deletes a row; the caller holds the lock.
func (s *cascadeService) remove(key rowKey) {
	if n := key.number(); n >= 0 && n < len(s.gone) && !s.gone[n] {
		s.gone[n] = true
		s.left--
	}
}

// page answers a Query; the caller holds the lock.
func (s *cascadeService) page(from, limit int) string {
	if limit == 0 || limit > perPage {
		limit = perPage
	}
	var items []string
	next := ""
	for n := from; n < len(s.gone); n++ {
		if s.gone[n] {
			continue
		}
		if items = append(items, rowJSON(n)); len(items) == limit {
			next = `,"LastEvaluatedKey":` + rowJSON(n)
			break
		}
	}
	return fmt.Sprintf(`{"Count":%d,"Items":[%s]%s}`, len(items), strings.Join(items, ","), next)
}
