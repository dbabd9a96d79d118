package opensearch

import (
	"context"

	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/reindex"
)

// Follow returns a function that writes each op to the index behind the alias that
// the op names. While sluice reindex fills a second index, the function writes to
// both. It asks the cluster every 10 seconds where an alias leads. It returns nil
// when every index has taken the op. It is safe for concurrent use.
//
// It panics if write is nil.
//
// All writers of an alias must be made by Follow: the others miss the second index.
func (c *Indices) Follow(write func(ctx context.Context, op document.Op) error) func(ctx context.Context, op document.Op) error {
	if write == nil {
		panic("opensearch: Follow: the function that writes is nil")
	}
	return reindex.Writer{Write: write, Behind: c.Behind}.New()
}
