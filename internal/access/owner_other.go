//go:build !unix

package access

const owned = false // files have no owners

func ownerOf(string) (uint32, error) { return 0, nil }
