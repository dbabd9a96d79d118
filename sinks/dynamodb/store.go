package dynamodb

import (
	"errors"
	"fmt"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"golang.org/x/sync/semaphore"

	"github.com/sluicehq/sluice/batch"
	"github.com/sluicehq/sluice/internal/awsclient"
	"github.com/sluicehq/sluice/metrics"
)

// Store reads and writes the tables of one account and Region. It is safe for
// concurrent use. It has no goroutine and needs no Close.
type Store struct {
	db     *dynamodb.Client
	opt    Options
	where  string // endpoint and Region, for messages
	budget tableBudgets

	// For Put and Delete.
	keys   keySchemas
	order  lanes
	shared *batch.Batcher[*batchWrite]
	own    sync.Map // *batch.Batcher[*batchWrite] by table name: for tables with a budget or that were throttled

	guarded *semaphore.Weighted // limits requests of DeleteGuarded with a condition

	once *once

	consumed *metrics.Series
}

// New returns a Store, or an error that names every invalid option. It makes no
// call: [Store.Check] verifies the tables.
func New(cfg aws.Config, o Options) (*Store, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	if cfg.Region == "" {
		return nil, errors.New("dynamodb: no Region: set AWS_REGION, the profile's region, or Region of the aws.Config")
	}
	s := &Store{opt: o.withDefaults()}
	// The Store repeats requests, not the SDK. Two loops would multiply
	// attempts. The SDK does not see unprocessed writes, does not ask the
	// budget before a repeat, and shares one retry quota among all tables: one
	// throttled table would use up the others' retries.
	s.db = dynamodb.NewFromConfig(awsclient.Tuned(cfg, 2*s.opt.InFlight), func(c *dynamodb.Options) {
		s.where = "at AWS in region " + c.Region
		if c.BaseEndpoint != nil {
			s.where = fmt.Sprintf("at %s in region %s", *c.BaseEndpoint, c.Region)
		}
	})
	s.budget = newBudget(s.opt.Budget)
	s.consumed = writeUnits.Of(s.opt.Metrics)
	s.keys.ask = s.keyNames
	for table, names := range s.opt.Keys {
		s.keys.set(table, names, true)
	}
	s.newBatchers()
	s.guarded = semaphore.NewWeighted(int64(s.opt.InFlight))
	s.once = newOnce(s.transactOnce, func(err error) error { return s.explain("TransactWriteItems", "", err) }, s.opt)
	return s, nil
}
