package dynamodb

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluicehq/sluice/effect/dynamo"
)

// writeItem is the PutItem, UpdateItem or DeleteItem of an application: DynamoDB
// refuses it while a transaction holds the item. It reports whether it was taken.
func (s *service) writeItem(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.busy[key]
}

// Transactions that count meet the application's writes of the same row, and none
// of other rows: a row of its own for the counter keeps both apart. A writer that
// tries again gets through.
func TestWritersMeetTransactions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, 1, faults{})
		s.items["counters/parent"], s.items["counters/own"] = map[string]string{"pk": "parent"}, map[string]string{"pk": "own"}
		counting := func(counter string) (met, tries int) {
			st := s.store(Options{})
			stop := make(chan struct{})
			var wg sync.WaitGroup
			for w := range 8 { // records of its children, one after another
				wg.Go(func() {
					for n := 0; ; n++ {
						select {
						case <-stop:
							return
						default:
						}
						if _, err := st.Once(t.Context(), dynamo.Unit{Marker: marker("%s-%d-%d", counter, w, n), Adds: []dynamo.Add{addTo(counter, 1)}}); err != nil {
							t.Error(err)
						}
					}
				})
			}
			for i := range 60 { // the application writes the parent
				time.Sleep(time.Duration(7+i%5) * time.Millisecond)
				for tries++; !s.writeItem("counters/parent"); tries++ {
					met++
					time.Sleep(time.Duration(5+tries%20) * time.Millisecond)
				}
			}
			close(stop)
			wg.Wait()
			return met, tries
		}
		met, tries := counting("parent")
		if met < tries/2 {
			t.Errorf("of %d writes %d met a transaction: the test shows nothing", tries, met)
		}
		if apart, tries := counting("own"); apart != 0 {
			t.Errorf("of %d writes %d met a transaction at another row", tries, apart)
		}
		t.Logf("counted on the row itself: %d of %d writes met a transaction", met, tries)
	})
}

// answers are of a service, one after another.
type answers struct{ status []int }

func (a *answers) Do(*http.Request) (*http.Response, error) {
	status, body := a.status[0], `{}`
	a.status = a.status[1:]
	if status != http.StatusOK {
		body = `{"__type":"com.amazonaws.dynamodb.v20120810#TransactionConflictException","message":"Transaction is ongoing for the item"}`
	}
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}}, Body: io.NopCloser(strings.NewReader(body)),
	}, nil
}

// The SDK retries a transaction conflict only with the retryer of docs/counters.md.
func TestSDKRepeatsConflictsWhenTold(t *testing.T) {
	for _, told := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			client := &answers{[]int{400, 400, 400, 200}}
			cfg := aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""), HTTPClient: client}
			db := dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
				if told {
					o.Retryer = retry.AddWithMaxAttempts(retry.AddWithErrorCodes(o.Retryer, "TransactionConflictException"), 10)
				}
			})
			_, err := db.DeleteItem(context.Background(), &dynamodb.DeleteItemInput{TableName: new("t"), Key: attributes(map[string]string{"pk": "a"})})
			if (err == nil) != told || len(client.status) != map[bool]int{false: 3, true: 0}[told] {
				t.Errorf("told %v: %v, %d answers are left", told, err, len(client.status))
			}
		})
	}
}
