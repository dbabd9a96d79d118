package awsclient

import (
	"context"
	"strings"

	"github.com/aws/smithy-go/logging"
)

// quiet drops the SDK's message about a successful response without a checksum,
// which it compares with 0. DynamoDB Local's errors have no checksum.
type quiet struct{ logging.Logger }

func (q quiet) Logf(c logging.Classification, format string, v ...any) {
	for _, arg := range v {
		if err, ok := arg.(error); ok && strings.HasPrefix(err.Error(), "response did not match expected checksum, 0, ") {
			return
		}
	}
	q.Logger.Logf(c, format, v...)
}

func (q quiet) WithContext(ctx context.Context) logging.Logger {
	return quiet{logging.WithContext(ctx, q.Logger)}
}
