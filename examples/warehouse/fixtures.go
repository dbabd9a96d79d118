package warehouse

import (
	_ "embed"

	"github.com/sluicehq/sluice/examples/internal/kit"
)

//go:embed fixtures/items.ndjson
var fixtures []byte

// Fixture is an item and the table, without its prefix, that it is in.
type Fixture = kit.Fixture

// Fixtures returns a head with the build of 0.9.0; the seven events of a build of
// two locales, of which the sixth repeats the fifth and the last is late; and a
// build, a version and two release lines of another package.
func Fixtures() []Fixture { return kit.Fixtures(fixtures) }
