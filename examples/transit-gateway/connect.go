package transitgateway

import (
	"cmp"
	"context"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/examples/internal/kit"
	"github.com/sluicehq/sluice/run"
)

// Connect returns the routes on their tables, on the queue of TGW_QUEUE and the
// cluster of TGW_OPENSEARCH, as run.App wants them.
func Connect(prefix string) func(context.Context, run.Setup) (sluice.Matcher, error) {
	return func(_ context.Context, s run.Setup) (sluice.Matcher, error) {
		queue, err := kit.StandardQueue(s, "TGW_QUEUE", "of the janitor, a standard one", "claim", "janitor")
		if err != nil {
			return nil, err
		}
		store, err := kit.Store(s)
		if err != nil {
			return nil, err
		}
		client, err := kit.Cluster(s.Env, "TGW", s.AWS("opensearch"))
		if err != nil {
			return nil, err
		}
		documents, err := kit.Documents(s, client)
		if err != nil {
			return nil, err
		}
		s.Check("tables", func(ctx context.Context) error { return store.Check(ctx, Tables(prefix)...) })
		s.Check("opensearch", func(ctx context.Context) error { return CheckIndex(ctx, client, Index(s.Env)) }, "document")
		if !s.Lambda && len(s.Queues) == 0 {
			s.Logger.Warn("no queue is consumed: names without a gateway are left to another process; --queue (SLUICE_QUEUES) names one")
		}
		return NewRouter(Deps{
			Store: store, Prefix: prefix, Write: documents.Write, Index: Index(s.Env), Send: queue.Send, Logger: s.Logger,
		})
	}
}

// Index is the index of TGW_INDEX.
func Index(env func(string) string) string { return cmp.Or(env("TGW_INDEX"), DefaultIndex) }
