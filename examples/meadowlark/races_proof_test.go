//go:build integration && proof

package meadowlark

import (
	"testing"

	"github.com/sluicehq/sluice/internal/localtest"
)

func TestProofThousandRaces(t *testing.T) {
	localtest.OwnDynamoDB(t)
	races(t, 1000)
}
