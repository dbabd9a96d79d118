package manhunt

import (
	_ "embed"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/examples/internal/kit"
)

//go:embed fixtures/items.ndjson
var fixtures []byte

// Fixtures returns items in the order in which they are to be written: a
// contact with two methods, an active search for it, a canceled search for
// someone else, and an attempt of the first search, twice: about to be made,
// and made.
func Fixtures() []sluice.Item { return kit.Items(fixtures) }
