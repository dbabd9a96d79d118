package opensearch

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/sluicehq/sluice/internal/backoff"
)

const (
	readAttempts = 6
	readBackoff  = 100 * time.Millisecond // before the second attempt; doubled before each later one
)

// read is Call for requests that are safe to repeat. It repeats them a few times
// while the cluster is busy or unreachable.
func (c *Client) read(ctx context.Context, method, path string, in, out any) error {
	for attempt := 1; ; attempt++ {
		err := c.Call(ctx, method, path, in, out)
		if err == nil || attempt == readAttempts || ctx.Err() != nil {
			return err
		}
		if o := judgeRequest(err); o != passing && o != busy {
			return err
		}
		most := readBackoff << attempt
		if ended := backoff.Sleep(ctx, rand.N(most/2)+most/2); ended != nil {
			return errors.Join(err, ended)
		}
	}
}

// Check verifies at the start that the cluster is reachable with the current
// credentials. Its error has advice. While the cluster is busy or unreachable,
// Check retries for a few seconds. It needs the permission to GET /, which
// OpenSearch Serverless does not support.
func (c *Client) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	return c.read(ctx, "GET", "/", nil, nil)
}
