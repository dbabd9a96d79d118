package cascade

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/sinks/dynamodb"
)

// service speaks DynamoDB's protocol for one map and its points, under virtual
// time: an HTTP client, so that no network is needed. A write is one unit.
type service struct {
	t *testing.T

	mu       sync.Mutex
	parent   bool
	points   map[string]string // version by id
	busy     bool              // writes are throttled
	lost     int               // points of version 2 that were deleted
	requests map[string]int
	lateness time.Duration // of the parent's return
	back     time.Time
}

type attributes map[string]map[string]string

// put puts the map and its points, of a version.
func (s *service) put(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parent, s.back = true, time.Now()
	for i := range 300 {
		s.points[fmt.Sprintf("p-%03d", i)] = version
	}
}

func (s *service) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	time.Sleep(5 * time.Millisecond)
	_, call, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	w := httptest.NewRecorder()
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	s.answer(w, call, body)
	return w.Result(), nil
}

func (s *service) answer(w *httptest.ResponseRecorder, call string, body []byte) {
	var in struct {
		Key                       attributes
		ConditionExpression       string
		ExpressionAttributeValues attributes
		RequestItems              map[string][]struct{ DeleteRequest struct{ Key attributes } }
	}
	if err := json.Unmarshal(body, &in); err != nil {
		s.t.Error(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests[call]++
	refuse := func(code string) {
		w.WriteHeader(400)
		fmt.Fprintf(w, `{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":"refused"}`, code)
	}
	units := 0
	remove := func(key attributes) {
		units++
		id := key["point_id"]["S"]
		if s.points[id] == "2" {
			s.lost++
			s.lateness = time.Since(s.back)
		}
		delete(s.points, id)
	}
	switch call {
	case "GetItem":
		if s.parent {
			fmt.Fprint(w, `{"Item":`+mapKey+`}`)
		} else {
			fmt.Fprint(w, `{}`)
		}
		return
	case "Query":
		var items []string
		for id, version := range s.points {
			items = append(items, fmt.Sprintf(`{"map_id":{"S":"m-1"},"point_id":{"S":%q},"version":{"N":%q}}`, id, version))
		}
		fmt.Fprintf(w, `{"Items":[%s]}`, strings.Join(items, ","))
		return
	case "BatchWriteItem", "DeleteItem":
		if s.busy {
			refuse("ProvisionedThroughputExceededException")
			return
		}
	}
	if call == "DeleteItem" {
		if in.ConditionExpression != "attribute_not_exists(#n) OR #n <= :n" {
			s.t.Error(in.ConditionExpression)
		}
		if s.points[in.Key["point_id"]["S"]] > in.ExpressionAttributeValues[":n"]["N"] {
			refuse("ConditionalCheckFailedException")
			return
		}
		remove(in.Key)
		fmt.Fprintf(w, `{"ConsumedCapacity":{"TableName":"points","CapacityUnits":%d}}`, units)
		return
	}
	for _, r := range in.RequestItems["points"] {
		remove(r.DeleteRequest.Key)
	}
	fmt.Fprintf(w, `{"UnprocessedItems":{},"ConsumedCapacity":[{"TableName":"points","CapacityUnits":%d}]}`, units)
}

// A map comes back with the same points, while deletes of the old points wait for a
// budget of 20 units a second or for a throttled table. The new points stay, except
// those in requests sent in the moment after the put.
func TestPointsOfAMapThatIsBackStay(t *testing.T) {
	for _, tt := range []struct {
		name   string
		budget float64
		busy   time.Duration // writes are throttled at the start
		blind  bool          // the look at the parent never finds it
		limit  Limit
		lost   int // at most
	}{
		{"budget", 20, 0, false, Limit{}, 0},
		{"throttle", 0, 4 * time.Second, false, Limit{}, 0},
		{"both", 20, 3 * time.Second, false, Limit{}, 0},
		{"neither", 0, 0, false, Limit{}, 300},
		{"by version", 20, 0, true, Limit{Name: "version", From: "version"}, 0},
		{"by version, throttled", 0, 4 * time.Second, true, Limit{Name: "version", From: "version"}, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &service{t: t, points: map[string]string{}, requests: map[string]int{}}
			s.put("1")
			s.parent, s.busy = false, tt.busy > 0
			o := dynamodb.Options{Attempts: 100}
			if tt.budget > 0 {
				o.Budget = map[string]float64{"points": tt.budget}
			}
			store, err := dynamodb.New(aws.Config{
				Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""), HTTPClient: s,
			}, o)
			if err != nil {
				t.Fatal(err)
			}
			c := points(0).config()
			c.Get, c.Query, c.Delete = store.Get, store.Query, store.DeleteGuarded
			c.Threshold, c.Send = Unlimited, nil
			c.Children[0].NotNewer = tt.limit
			if tt.blind {
				c.Get = points(0).get
			}
			comeback := 2500 * time.Millisecond
			if tt.name == "neither" {
				comeback = 16 * time.Millisecond // while the requests are on their way
			}
			time.AfterFunc(comeback, func() { s.put("2") })
			time.AfterFunc(tt.busy, func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.busy = false
			})
			rec := removed("maps", mapKey, strings.TrimSuffix(mapKey, "}")+`,"version":{"N":"1"}}`)
			err = must(t, c).Remove(t.Context(), rec)
			time.Sleep(time.Minute)
			s.mu.Lock()
			defer s.mu.Unlock()
			t.Logf("%s: %d of 300 new points were deleted, the last %v after the map was back; %v", tt.name, s.lost, s.lateness, s.requests)
			if s.lost > tt.lost || s.lateness > 100*time.Millisecond+5*time.Millisecond || len(s.points) != 300-s.lost {
				t.Errorf("%s: %d of 300 new points were deleted, the last %v after the map was back", tt.name, s.lost, s.lateness)
			}
			if !tt.blind && tt.name != "neither" && !sluice.IsSkip(err) {
				t.Errorf("%s: %v", tt.name, err)
			}
		})
	}
}
