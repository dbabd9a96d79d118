//go:build unix

package deadletter

import (
	"os"
	"syscall"
)

// lock locks the file for this process. The system unlocks it when it is closed.
func lock(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}
