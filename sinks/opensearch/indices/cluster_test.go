package indices

import (
	"context"
	"testing"

	"github.com/sluicehq/sluice/sinks/opensearch"
)

type answers struct{ err error }

func (a answers) Call(context.Context, string, string, any, any) error { return a.err }

// OpenSearch Serverless answers a refresh by 404 and nothing else; a cluster says
// that there is no such index.
func TestRefreshOfServerless(t *testing.T) {
	if err := New(answers{&opensearch.StatusError{Status: 404}}).Refresh(t.Context(), "i"); err != nil {
		t.Error(err)
	}
	if err := New(answers{&opensearch.StatusError{Status: 404, Type: "index_not_found_exception"}}).Refresh(t.Context(), "i"); err == nil {
		t.Error("there is no index i")
	}
}
