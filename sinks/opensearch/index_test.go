package opensearch

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

type failing struct{ err error }

func (a failing) Call(context.Context, string, string, any, any) error { return a.err }

// OpenSearch Serverless fails a refresh with a bare 404. A cluster's 404 says that the
// index is missing.
func TestRefreshOfServerless(t *testing.T) {
	if err := newIndices(failing{&StatusError{Status: 404}}).Refresh(t.Context(), "i"); err != nil {
		t.Error(err)
	}
	if err := newIndices(failing{&StatusError{Status: 404, Type: "index_not_found_exception"}}).Refresh(t.Context(), "i"); err == nil {
		t.Error("there is no index i")
	}
}

func TestFollowNothing(t *testing.T) {
	defer func() {
		if v := recover(); v == nil || !strings.Contains(fmt.Sprint(v), "the function that writes is nil") {
			t.Errorf("Follow(nil): %v", v)
		}
	}()
	new(Indices).Follow(nil)
}
