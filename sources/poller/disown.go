package poller

import (
	"context"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/sluicehq/sluice/internal/streamsapi"
)

// disownAfter is the time for which a stream must be ENABLED, while its table
// names a later stream, before the poller disowns it. DynamoDB disables a stream
// before it enables the next. Only late responses contradict that, for seconds.
const disownAfter = time.Minute

// ownAPI is the service as one stream sees it. Some emulators answer for every ARN
// of a table with the current stream, even for a deleted table. Positions of the
// old stream do not apply to the new one: reading from them would skip records.
// ownAPI therefore reports that the service does not know the old stream.
type ownAPI struct {
	*streamsapi.Client
	stream *stream

	mu       sync.Mutex
	enabled  time.Time // since when it is ENABLED though replaced; zero: it is not
	disowned bool
}

var errDisowned = &types.ResourceNotFoundException{Message: new("the stream is ENABLED, but its table names a later one: it is not the table's stream any more")}

func (a *ownAPI) DescribeStream(ctx context.Context, in *dynamodbstreams.DescribeStreamInput, opts ...func(*dynamodbstreams.Options)) (*dynamodbstreams.DescribeStreamOutput, error) {
	out, err := a.Client.DescribeStream(ctx, in, opts...)
	if err != nil || out.StreamDescription == nil {
		return out, err
	}
	return out, a.judge(out.StreamDescription.StreamStatus)
}

// judge takes a status and returns an error if the stream is disowned.
func (a *ownAPI) judge(status types.StreamStatus) error {
	replaced := a.stream.isReplaced()
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.disowned:
	case !replaced || status != types.StreamStatusEnabled:
		a.enabled = time.Time{}
		return nil
	case a.enabled.IsZero():
		a.enabled = time.Now()
		return nil
	case time.Since(a.enabled) < disownAfter:
		return nil
	}
	a.disowned = true
	return errDisowned
}

func (a *ownAPI) GetShardIterator(ctx context.Context, in *dynamodbstreams.GetShardIteratorInput, opts ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetShardIteratorOutput, error) {
	if err := a.err(); err != nil {
		return nil, err
	}
	return a.Client.GetShardIterator(ctx, in, opts...)
}

func (a *ownAPI) GetRecords(ctx context.Context, iterator string, limit int32) ([]byte, error) {
	if err := a.err(); err != nil {
		return nil, err
	}
	return a.Client.GetRecords(ctx, iterator, limit)
}

func (a *ownAPI) err() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.disowned {
		return errDisowned
	}
	return nil
}
