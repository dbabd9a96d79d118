package poller

import (
	"sync/atomic"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
)

// clock is the service's clock, which decides what the service trims. The
// machine's clock may be hours wrong: the SDK then signs with the service's time,
// and calls succeed. The nil clock and the zero clock are the machine's.
type clock struct{ ahead atomic.Int64 } // of the machine's clock, in nanoseconds

// heard takes the time from the Date header of a response.
func (c *clock) heard(md middleware.Metadata) {
	if ahead, ok := awsmiddleware.GetAttemptSkew(md); ok && c != nil {
		c.ahead.Store(int64(ahead))
	}
}

func (c *clock) now() time.Time { return c.at(time.Now()) }

// at converts a time t of the machine's clock to the service's clock.
func (c *clock) at(t time.Time) time.Time {
	if c == nil {
		return t
	}
	return t.Add(time.Duration(c.ahead.Load()))
}
