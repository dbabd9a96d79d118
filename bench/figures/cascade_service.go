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
// "points": every call takes a time, and writes beyond a capacity are given
// back. A delete is one unit.
type cascadeService struct {
	took     time.Duration
	capacity float64

	mu      sync.Mutex
	gone    []bool // by number of the row
	left    int
	level   float64 // units that there are
	at      time.Time
	calls   int
	refused int // writes that were given back
}

// savedUp is how many seconds' worth of units the service saves up. DynamoDB
// has 300; here it is as little as leaves room, beyond the second that a Store's
// budget saves up, for requests that are under way at once.
const savedUp = 1.25

// perPage is how many rows 1 MB has, of 200 bytes each.
const perPage = 5000

func newCascadeService(rows int, capacity float64, took time.Duration) *cascadeService {
	return &cascadeService{took: took, capacity: capacity, gone: make([]bool, rows), left: rows, level: savedUp * capacity, at: time.Now()}
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
		if n := in.Key.number(); n >= 0 && n < len(s.gone) && !s.gone[n] {
			s.gone[n] = true
			s.left--
		}
		fmt.Fprint(w, `{"ConsumedCapacity":{"TableName":"points","CapacityUnits":1}}`)
	case "BatchWriteItem":
		var back []string
		done := 0
		for _, write := range in.RequestItems["points"] {
			n := write.DeleteRequest.Key.number()
			if n < 0 || n >= len(s.gone) {
				http.Error(w, "no such row", http.StatusBadRequest)
				return
			}
			if !s.take() {
				back = append(back, `{"DeleteRequest":{"Key":`+rowJSON(n)+`}}`)
				continue
			}
			done++
			if !s.gone[n] {
				s.gone[n] = true
				s.left--
			}
		}
		s.refused += len(back)
		if done == 0 {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException","message":"The level of configured provisioned throughput for the table was exceeded."}`)
			return
		}
		unprocessed := ""
		if len(back) > 0 {
			unprocessed = `"points":[` + strings.Join(back, ",") + `]`
		}
		fmt.Fprintf(w, `{"UnprocessedItems":{%s},"ConsumedCapacity":[{"TableName":"points","CapacityUnits":%d}]}`, unprocessed, done)
	default:
		http.Error(w, "no such action: "+action, http.StatusBadRequest)
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

// take takes a unit if there is one.
func (s *cascadeService) take() bool {
	now := time.Now()
	s.level = min(s.level+s.capacity*now.Sub(s.at).Seconds(), savedUp*s.capacity)
	s.at = now
	if s.level < 1 {
		return false
	}
	s.level--
	return true
}
