package daemon

import (
	"bufio"
	"bytes"
	"io/fs"
	"log/slog"
	"math"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// limitMemory has the garbage collector work harder before the process comes to
// the limit of its container, where the kernel would end it: it sets GOMEMLIMIT
// to 90 % of that, unless the environment has set it. The rest is for what Go
// does not count, such as pages of the state file. root is the file system.
func limitMemory(root fs.FS, env func(string) string, logger *slog.Logger) {
	if env("GOMEMLIMIT") != "" || debug.SetMemoryLimit(-1) != math.MaxInt64 {
		return
	}
	limit, file := containerLimit(root)
	if limit == 0 {
		return
	}
	soft := limit / 10 * 9
	debug.SetMemoryLimit(soft)
	logger.Info("memory is limited to 90 % of the container's: GOMEMLIMIT in the environment sets it otherwise", "bytes", soft, "limit", limit, "file", "/"+file)
}

// unlimited is the limit of a version 1 cgroup without a limit, or less than it:
// the largest number of whole pages.
const unlimited = math.MaxInt64 - 1<<20

// containerLimit returns the smallest memory limit in bytes of the process's
// cgroup and its ancestors, and its file; 0 if there is none.
func containerLimit(root fs.FS) (limit int64, file string) {
	own, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0, "" // not Linux
	}
	consider := func(mount, group, name string) {
		// Within a container the group may be named as it is outside, where
		// nothing can be seen of it: its limit is at the top then.
		for group = path.Clean("/" + group); ; group = path.Dir(group) {
			f := path.Join(mount, group, name)
			if n := limitOf(root, f); n > 0 && (limit == 0 || n < limit) {
				limit, file = n, f
			}
			if group == "/" {
				return
			}
		}
	}
	for s := bufio.NewScanner(bytes.NewReader(own)); s.Scan(); {
		parts := strings.SplitN(s.Text(), ":", 3) // number, controllers, group
		if len(parts) != 3 {
			continue
		}
		switch controllers := parts[1]; {
		case controllers == "": // version 2
			consider("sys/fs/cgroup", parts[2], "memory.max")
		case controllers == "memory" || strings.HasPrefix(controllers, "memory,") || strings.Contains(controllers, ",memory"):
			consider("sys/fs/cgroup/memory", parts[2], "memory.limit_in_bytes")
		}
	}
	return limit, file
}

// limitOf returns the limit in a file, and 0 for no limit, or no such file.
func limitOf(root fs.FS, file string) int64 {
	text, err := fs.ReadFile(root, file)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64) // or "max"
	if err != nil || n <= 0 || n >= unlimited {
		return 0
	}
	return n
}
