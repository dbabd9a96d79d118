package dynamostate

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

// control is the service's control plane: the answers to each operation, in order,
// the last of them for ever.
type control struct {
	answers map[string][]string // "" is a refusal that says to come again
	calls   []string
}

func (c *control) Do(r *http.Request) (*http.Response, error) {
	_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	c.calls = append(c.calls, op)
	all := c.answers[op]
	if len(all) == 0 {
		return nil, fmt.Errorf("%s was not expected", op)
	}
	if len(all) > 1 {
		c.answers[op] = all[1:]
	}
	status := http.StatusOK
	if strings.Contains(all[0], `"__type"`) {
		status = http.StatusBadRequest
	}
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}}, Body: io.NopCloser(strings.NewReader(all[0])), Request: r}, nil
}

func (c *control) config() aws.Config {
	return aws.Config{Region: "us-east-1", HTTPClient: c, Credentials: credentials.NewStaticCredentialsProvider("AKID", "secret", "")}
}

const (
	active     = `{"Table":{"TableStatus":"ACTIVE","KeySchema":[{"AttributeName":"partition","KeyType":"HASH"},{"AttributeName":"sort","KeyType":"RANGE"}]}}`
	ttlOff     = `{"TimeToLiveDescription":{"TimeToLiveStatus":"DISABLED"}}`
	ttlOn      = `{"TimeToLiveDescription":{"TimeToLiveStatus":"ENABLING","AttributeName":"expires"}}`
	exists     = `{"__type":"com.amazonaws.dynamodb.v20120810#ResourceInUseException","message":"Table already exists: state"}`
	ttlRefused = `{"__type":"com.amazon.coral.validate#ValidationException","message":"TimeToLive is already enabled"}`
	backupsOff = `{"__type":"com.amazonaws.dynamodb.v20120810#ContinuousBackupsUnavailableException","message":"Backups are being enabled for the table: state. Please retry later"}`
)

func TestCreate(t *testing.T) {
	for name, c := range map[string]struct {
		answers map[string][]string
		calls   string
		fails   string
	}{
		"a new table": {map[string][]string{
			"CreateTable": {`{}`}, "DescribeTable": {strings.Replace(active, "ACTIVE", "CREATING", 1), active},
			"DescribeTimeToLive": {ttlOff}, "UpdateTimeToLive": {`{}`}, "UpdateContinuousBackups": {backupsOff, backupsOff, `{}`},
		}, "CreateTable DescribeTable DescribeTable DescribeTable DescribeTimeToLive UpdateTimeToLive UpdateContinuousBackups UpdateContinuousBackups UpdateContinuousBackups", ""},
		"two at once": {map[string][]string{
			"CreateTable": {exists}, "DescribeTable": {active}, "Scan": {`{"Items":[{"partition":{"S":"a"},"sort":{"S":"b"},"token":{"S":"c"}}]}`},
			"DescribeTimeToLive": {ttlOff, ttlOn}, "UpdateTimeToLive": {ttlRefused}, "UpdateContinuousBackups": {`{}`},
		}, "CreateTable DescribeTable DescribeTable Scan DescribeTimeToLive UpdateTimeToLive DescribeTimeToLive UpdateContinuousBackups", ""},
		"no permission": {map[string][]string{
			"CreateTable": {`{"__type":"com.amazon.coral.service#AccessDeniedException","message":"User is not authorized"}`},
		}, "CreateTable", "the credentials lack the permission dynamodb:CreateTable"},
		"a table of others": {map[string][]string{
			"CreateTable": {exists}, "DescribeTable": {active}, "Scan": {`{"Items":[{"partition":{"S":"a"},"sort":{"S":"b"},"expires":{"N":"1"}}]}`},
		}, "CreateTable DescribeTable DescribeTable Scan", "table state has other items and is no state table"},
		"a global table": {map[string][]string{
			"CreateTable": {exists}, "DescribeTable": {strings.Replace(active, `"KeySchema"`, `"Replicas":[{"RegionName":"us-east-2"}],"KeySchema"`, 1)},
		}, "CreateTable DescribeTable DescribeTable", "is a global table"},
		"another table": {map[string][]string{
			"CreateTable": {exists}, "DescribeTable": {strings.Replace(active, "partition", "pk", 1)},
		}, "CreateTable DescribeTable DescribeTable", "a state table has [partition sort]"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				service := &control{answers: c.answers}
				err := Create(t.Context(), service.config(), "state", CreateOptions{PointInTimeRecovery: true})
				if (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
					t.Errorf("Create: %v, want %q", err, c.fails)
				}
				if got := strings.Join(service.calls, " "); got != c.calls {
					t.Errorf("calls %s\nwant  %s", got, c.calls)
				}
			})
		})
	}
}
