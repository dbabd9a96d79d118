//go:build unix

package access

import (
	"os"
	"syscall"
)

const owned = true // files have owners

// ownerOf is the user that a file, or a link, belongs to.
func ownerOf(path string) (uint32, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return 0, err
	}
	return info.Sys().(*syscall.Stat_t).Uid, nil
}
