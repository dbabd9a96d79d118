//go:build !unix

package localstack

import (
	"context"
	"errors"
	"fmt"
)

func lock(context.Context, string) (func(), error) {
	return nil, fmt.Errorf("%w here: set %s and %s to servers that run", errors.ErrUnsupported, EnvDynamoDB, EnvSQS)
}
