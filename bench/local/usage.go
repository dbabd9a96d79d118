//go:build unix

package local

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// CPU returns the CPU time that this process has used, user and system.
func CPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Memory returns the resident size of a process, in bytes.
func Memory(pid int) (float64, error) {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, fmt.Errorf("resident memory is available on Linux only: %w", err)
	}
	return kibibytes(string(status), "VmRSS:")
}

func kibibytes(status, name string) (float64, error) {
	_, rest, _ := strings.Cut(status, name)
	line, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(line, "kB")), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s %q in the process's status: %w", name, line, err)
	}
	return float64(n << 10), nil
}

// Median returns the one in the middle.
func Median(x []float64) float64 { return slices.Sorted(slices.Values(x))[len(x)/2] }

// Percentile returns the smallest of the sorted values that p percent of them
// do not exceed.
func Percentile(sorted []float64, p float64) float64 {
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[max(1, rank)-1]
}
