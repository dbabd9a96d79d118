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
	readBackoff  = 100 * time.Millisecond // before the second attempt; twice as much before each later one
)

// read is Call for what can be asked again without harm, which it does a few
// times when the cluster is busy or cannot be reached.
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

// Check tells at the start whether the cluster can be reached with the
// credentials there are; the error says what to do. While the cluster is busy
// or cannot be reached, Check asks again for some seconds. It needs the
// permission to GET /, which OpenSearch Serverless does not answer.
func (c *Client) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	return c.read(ctx, "GET", "/", nil, nil)
}
