//go:build unix

package deadletter

import (
	"os"
	"syscall"
)

// lock takes the file for this process; the system gives it up with the file.
func lock(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}
