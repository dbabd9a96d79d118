//go:build integration && proof

package transitgateway

import (
	"testing"

	"github.com/sluicehq/sluice/internal/localtest"
)

func TestProofThousandfoldRace(t *testing.T) {
	localtest.OwnDynamoDB(t)
	c := newCity(t, localtest.OpenSearchURL(t), 0.2)
	c.race(1000, func(int64) {})
	c.settle()
}

// OpenSearch is killed in the middle and started again: no document is lost or left
// over. Old records do not come again here, because OpenSearch remembers deletions in
// memory only.
func TestProofOpenSearchIsKilled(t *testing.T) {
	localtest.OwnDynamoDB(t)
	own := localtest.OwnOpenSearch(t)
	c := newCity(t, own.URL, 0)
	c.race(60, func(created int64) {
		if created == 20 {
			own.Kill()
		}
	})
	own.Start()
	c.until("index and rows", func() string { return c.difference("rtb-1", "rtb-2") })
}
