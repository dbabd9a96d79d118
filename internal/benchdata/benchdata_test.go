package benchdata

import (
	"bytes"
	"testing"

	"github.com/sluicehq/sluice/item"
)

// A version that is equal to another makes no record.
func TestItem(t *testing.T) {
	for _, i := range []int{0, 7, 1999} {
		for version := range 60 {
			b := Item(i, version)
			if _, err := item.Parse(b); err != nil {
				t.Fatalf("item %d version %d: %v", i, version, err)
			}
			if len(b) < 1400 || len(b) > 1500 {
				t.Errorf("item %d version %d has %d bytes, want about 1440", i, version, len(b))
			}
			if version > 0 && bytes.Equal(b, Item(i, version-1)) {
				t.Errorf("item %d: versions %d and %d are equal", i, version-1, version)
			}
		}
	}
}
