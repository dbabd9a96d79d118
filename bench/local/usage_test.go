//go:build unix

package local

import "testing"

func TestKibibytes(t *testing.T) {
	const status = "Name:\tdaemon\nVmHWM:\t   37100 kB\nVmRSS:\t   32400 kB\nThreads:\t9\n"
	if got, err := kibibytes(status, "VmRSS:"); err != nil || got != 32400*1024 {
		t.Errorf("%v, %v; want %d", got, err, 32400*1024)
	}
	if got, err := kibibytes(status, "VmSwap:"); err == nil {
		t.Errorf("a member that is not there is %v", got)
	}
}
