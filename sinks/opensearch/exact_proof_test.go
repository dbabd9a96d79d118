//go:build integration && proof

package opensearch

import (
	"testing"

	"github.com/sluicehq/sluice/internal/localtest"
)

func TestProofExactOverRestarts(t *testing.T) { localtest.OwnOpenSearches(t, exactOverRestarts) }
