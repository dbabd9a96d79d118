package item

// View is the set of images in a stream's records, or the images a route needs.
type View uint8

const (
	KeysOnly   View = 0
	NewImage   View = 1
	OldImage   View = 2
	BothImages View = NewImage | OldImage

	// AnyImage, as a need, accepts either image. It is not a stream's view.
	AnyImage View = 4
)

var viewNames = [...]string{"KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES"}

// String returns the StreamViewType name. For AnyImage it returns both names.
func (v View) String() string {
	if v == AnyImage {
		return "NEW_IMAGE or OLD_IMAGE"
	}
	return viewNames[v&BothImages]
}

// Has reports whether a stream with view v has the images of need.
func (v View) Has(need View) bool {
	if need&AnyImage != 0 && v&BothImages == 0 {
		return false
	}
	need &= BothImages
	return v&need == need
}
