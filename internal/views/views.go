// Package views parses the names of stream views.
package views

import (
	"fmt"

	"github.com/sluicehq/sluice"
)

// Parse parses the name of a StreamViewType.
func Parse(name string) (sluice.View, error) {
	for _, v := range [...]sluice.View{sluice.BothImages, sluice.NewImage, sluice.OldImage, sluice.KeysOnly} {
		if name == v.String() {
			return v, nil
		}
	}
	return 0, fmt.Errorf("unknown StreamViewType %q: want KEYS_ONLY, NEW_IMAGE, OLD_IMAGE or NEW_AND_OLD_IMAGES", name)
}
