package reread

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
)

const ordersARN = "arn:aws:dynamodb:eu-west-1:111111111111:table/orders/stream/2026-01-01T00:00:00.000"

func keyOf(t *testing.T, text string) sluice.Item {
	keys, err := item.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// noTable is a service without tables.
type noTable struct{}

func (noTable) Do(r *http.Request) (*http.Response, error) {
	body := `{"__type":"com.amazonaws.dynamodb.v20120810#ResourceNotFoundException","message":"there is none"}`
	return &http.Response{StatusCode: http.StatusBadRequest, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// A table of the same name in another Region is not asked. Its missing item would be a
// reason to delete the letter.
func TestItemOfAnotherRegion(t *testing.T) {
	r := New(aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""), HTTPClient: noTable{}})
	_, err := r.Item(t.Context(), ordersARN, keyOf(t, `{"id":{"S":"1"}}`))
	if err == nil || errors.Is(err, ErrNoItem) || !strings.Contains(err.Error(), "it is in Region eu-west-1, and Region us-east-1 is set") {
		t.Error(err)
	}
}

// Nor is an item taken from a table of the same name in another account, or in
// another Region that an endpoint leads to.
func TestItemOfAnotherAccount(t *testing.T) {
	for _, tt := range []struct {
		place, want string
	}{
		{"eu-west-1:111111111111", ErrNoItem.Error()},
		{"eu-west-1:222222222222", "the credentials lead to arn:aws:dynamodb:eu-west-1:222222222222:table/orders"},
		{"us-east-1:111111111111", "the credentials lead to arn:aws:dynamodb:us-east-1:111111111111:table/orders"},
	} {
		read := false
		svc := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".GetItem") {
				read = true
				_, _ = io.WriteString(w, `{}`)
				return
			}
			_, _ = io.WriteString(w, `{"Table":{"TableArn":"arn:aws:dynamodb:`+tt.place+`:table/orders","KeySchema":[{"AttributeName":"id","KeyType":"HASH"}]}}`)
		}))
		r := New(aws.Config{Region: "eu-west-1", Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""), BaseEndpoint: &svc.URL})
		_, err := r.Item(t.Context(), ordersARN, keyOf(t, `{"id":{"S":"1"}}`))
		svc.Close()
		if err == nil || !strings.Contains(err.Error(), tt.want) || errors.Is(err, ErrNoItem) != read {
			t.Errorf("%s: %v, the item was read: %v", tt.place, err, read)
		}
	}
}

// A missing table says nothing about the item. With another account's credentials, the
// letter would be deleted.
func TestItemOfAnAccountWithoutTheTable(t *testing.T) {
	r := New(aws.Config{Region: "eu-west-1", Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""), HTTPClient: noTable{}})
	_, err := r.Item(t.Context(), ordersARN, keyOf(t, `{"id":{"S":"1"}}`))
	if err == nil || errors.Is(err, ErrNoItem) || !strings.Contains(err.Error(), "it is arn:aws:dynamodb:eu-west-1:111111111111:table/orders, and the credentials lead to no table of this name") {
		t.Error(err)
	}
}

// An endpoint that is no DynamoDB may answer everything with an empty object.
func TestItemOfNoService(t *testing.T) {
	svc := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{}`) }))
	defer svc.Close()
	r := New(aws.Config{Region: "eu-west-1", Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""), BaseEndpoint: &svc.URL})
	_, err := r.Item(t.Context(), ordersARN, keyOf(t, `{"id":{"S":"1"}}`))
	if err == nil || errors.Is(err, ErrNoItem) || !strings.Contains(err.Error(), "does not describe the table") {
		t.Error(err)
	}
}
