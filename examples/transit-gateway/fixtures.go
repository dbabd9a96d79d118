package transitgateway

import (
	_ "embed"

	"github.com/sluicehq/sluice/examples/internal/kit"
)

//go:embed fixtures/items.ndjson
var fixtures []byte

// Fixture is an item and the table, without its prefix, that it is in.
type Fixture = kit.Fixture

// Fixtures returns a gateway in its versions 0, 1 and 2; the claim of its name;
// and the claim of a gateway that was never made.
func Fixtures() []Fixture { return kit.Fixtures(fixtures) }
