package dynamodb

import (
	"errors"
	"fmt"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluicehq/sluice/batch"
	"github.com/sluicehq/sluice/internal/awsclient"
	"github.com/sluicehq/sluice/metrics"
)

// Store reads and writes the tables of one account and Region. It is safe for
// concurrent use. It has no goroutine and nothing to close.
type Store struct {
	db     *dynamodb.Client
	opt    Options
	where  string // for messages to people: endpoint and Region
	budget tableBudgets

	// Of Put and Delete.
	keys   keySchemas
	order  lanes
	shared *batch.Batcher[*batchWrite]
	own    sync.Map // *batch.Batcher[*batchWrite] by name of the table: of those with a budget, or that were throttled

	guarded chan struct{} // the requests of DeleteGuarded with a condition, at a time

	once *once

	consumed *metrics.Series
}

// New returns a Store, or an error that names every option that is wrong. It
// makes no call: [Store.Check] tells at the start whether tables can be
// reached.
func New(cfg aws.Config, o Options) (*Store, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	if cfg.Region == "" {
		return nil, errors.New("dynamodb: no Region: set AWS_REGION, the profile's region, or Region of the aws.Config")
	}
	s := &Store{opt: o.withDefaults()}
	// The SDK repeats nothing, the Store does. Two loops would multiply their
	// attempts; the SDK's does not see what comes back unprocessed, does not
	// ask the budget before it repeats, and shares one quota of retries among
	// all tables, so that one that is throttled would cost the others theirs.
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
	s.guarded = make(chan struct{}, s.opt.InFlight)
	s.once = newOnce(s.transactOnce, func(err error) error { return s.explain("TransactWriteItems", "", err) }, s.opt)
	return s, nil
}
