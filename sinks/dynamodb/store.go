package dynamodb

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// Store reads and writes the tables of one account and Region. It is safe for
// concurrent use. It has no goroutine and nothing to close.
type Store struct {
	db  *dynamodb.Client
	opt Options
}

// New returns a Store, or an error that names every option that is wrong. It
// makes no call.
func New(cfg aws.Config, o Options) (*Store, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	return &Store{db: dynamodb.NewFromConfig(cfg), opt: o.withDefaults()}, nil
}
