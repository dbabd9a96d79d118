package poller

import (
	"sync/atomic"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
)

// clock is the service's, which says what the service has trimmed. Our own may
// be hours wrong: the SDK signs with the service's time then, and calls
// succeed. The nil clock and the zero one are our own.
type clock struct{ ahead atomic.Int64 } // of our own, in nanoseconds

// heard takes the time from an answer's Date header.
func (c *clock) heard(md middleware.Metadata) {
	if ahead, ok := awsmiddleware.GetAttemptSkew(md); ok && c != nil {
		c.ahead.Store(int64(ahead))
	}
}

func (c *clock) now() time.Time { return c.at(time.Now()) }

// at is what the service's clock shows when ours shows t.
func (c *clock) at(t time.Time) time.Time {
	if c == nil {
		return t
	}
	return t.Add(time.Duration(c.ahead.Load()))
}
