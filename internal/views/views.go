// Package views parses the names of stream views.
package views

import (
	"fmt"

	"github.com/sluicehq/sluice/item"
)

// Parse parses the name of a StreamViewType.
func Parse(name string) (item.View, error) {
	for _, v := range [...]item.View{item.BothImages, item.NewImage, item.OldImage, item.KeysOnly} {
		if name == v.String() {
			return v, nil
		}
	}
	return 0, fmt.Errorf("unknown StreamViewType %q: want KEYS_ONLY, NEW_IMAGE, OLD_IMAGE or NEW_AND_OLD_IMAGES", name)
}
