package warehouse

import (
	"cmp"
	"context"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/examples/internal/kit"
	"github.com/sluicehq/sluice/handlers/projection"
	"github.com/sluicehq/sluice/run"
)

// Connect returns the routes on their tables, on the queue of WAREHOUSE_QUEUE and
// the cluster of WAREHOUSE_OPENSEARCH, as run.App wants them.
func Connect(prefix string) func(context.Context, run.Setup) (sluice.Matcher, error) {
	return func(_ context.Context, s run.Setup) (sluice.Matcher, error) {
		queue, err := kit.Queue(s, "WAREHOUSE_QUEUE", "that is told of builds", "announce")
		if err != nil {
			return nil, err
		}
		store, err := kit.Store(s)
		if err != nil {
			return nil, err
		}
		client, err := kit.Cluster(s.Env, "WAREHOUSE", s.AWS("opensearch"))
		if err != nil {
			return nil, err
		}
		documents, err := kit.Documents(s, client)
		if err != nil {
			return nil, err
		}
		s.Check("tables", func(ctx context.Context) error { return store.Check(ctx, All(prefix)...) })
		index := cmp.Or(s.Env("WAREHOUSE_INDEX_PREFIX"), DefaultIndexPrefix)
		marks := client.Indices().Marks(projection.DefaultMark, false)
		marks.MustExist = true // CreateIndexes maps the fields, too
		s.Check("opensearch", func(ctx context.Context) error { return CheckIndexes(ctx, client, marks, index) }, "index packages", "index builds")
		return NewRouter(Deps{
			Store: store, Send: queue.Send, Prefix: prefix,
			Write: marks.Writer(documents.Write), IndexPrefix: index,
		})
	}
}
