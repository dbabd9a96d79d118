package config

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/handlers/projection"
	"github.com/sluicehq/sluice/internal/docrules"
	"github.com/sluicehq/sluice/sinks/opensearch"
)

type writeDocument = func(context.Context, document.Op) error

// documents returns the function that writes a projection's documents, with marks for
// version: sequence.
func (cl *cluster) documents(p *Project) (writeDocument, *opensearch.Marks) {
	sequenced := p.Version == "sequence"
	write := cl.writer(len(p.Tombstone) > 0 || sequenced && !p.ForgetDeleted)
	var marks *opensearch.Marks
	if sequenced {
		marks = cl.indices.Marks(cmp.Or(p.Mark, projection.DefaultMark), p.ForgetDeleted)
		marks.MustExist = cl.o.RequireAlias
	}
	switch {
	case cl.fake != nil:
	case sequenced:
		write = marks.Writer(write)
	default:
		write = cl.indices.Unmarked(write)
	}
	return write, marks
}

// claim notes the version that a route uses for an index. All routes of an index must
// use the same.
func (cl *cluster) claim(index string, marks *opensearch.Marks, p *Project) error {
	how := "otherwise"
	if marks != nil {
		how = fmt.Sprintf("sequence, mark %q, forgetDeleted %t", cmp.Or(p.Mark, projection.DefaultMark), p.ForgetDeleted)
	}
	if before, ok := cl.versions[index]; ok && before != how {
		return fmt.Errorf("another route versions the documents of %s in another way: set the same version, mark and forgetDeleted", index)
	}
	cl.versions[index], cl.names[index] = how, marks
	return nil
}

// missing describes what happens to documents of a missing index or alias; "" if it
// exists. It ignores an unreachable cluster.
func (cl *cluster) missing(ctx context.Context, index string) string {
	if cl.o.RequireAlias {
		if behind, err := cl.indices.Behind(ctx, index); err == nil && len(behind[index]) == 0 {
			return fmt.Sprintf("there is no alias %s, and requireAlias writes to no other name: every document waits until there is one", index)
		}
		return ""
	}
	err := cl.client.Call(ctx, http.MethodHead, "/"+url.PathEscape(index), nil, nil)
	if status, ok := errors.AsType[*opensearch.StatusError](err); ok && status.Status == http.StatusNotFound {
		return fmt.Sprintf("there is no index or alias %s: OpenSearch makes an index with the first document, and guesses its mappings; to choose them, name a file in indices of the sink", index)
	}
	return ""
}

// lacks returns an error for the index or alias that field names. It ignores an
// unreachable cluster.
func (cl *cluster) lacks(ctx context.Context, field, index string) error {
	marks, inspect := cl.names[index], cl.indices.CheckUnmarked
	if marks != nil {
		inspect = marks.Inspect
	}
	if marks == nil || cl.o.RequireAlias { // else Sluice or OpenSearch creates the index
		if missing := cl.missing(ctx, index); missing != "" {
			return cl.c.fault(field, "%s", cl.c.source().masked(missing))
		}
	}
	if scheme, ok := errors.AsType[*docrules.SchemeError](inspect(ctx, index)); ok {
		return cl.c.wrong(field, scheme)
	}
	return nil
}
