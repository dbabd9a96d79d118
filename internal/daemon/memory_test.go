package daemon

import (
	"bytes"
	"io/fs"
	"log/slog"
	"math"
	"runtime/debug"
	"strings"
	"testing"
	"testing/fstest"
)

func files(pairs ...string) fs.FS {
	m := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return m
}

func TestContainerLimit(t *testing.T) {
	for _, tt := range []struct {
		name  string
		root  fs.FS
		limit int64
		file  string
	}{
		{"no Linux", files(), 0, ""},
		{"version 2 in a namespace", files("proc/self/cgroup", "0::/\n", "sys/fs/cgroup/memory.max", "536870912\n"), 536870912, "sys/fs/cgroup/memory.max"},
		{"version 2 without a limit", files("proc/self/cgroup", "0::/\n", "sys/fs/cgroup/memory.max", "max\n"), 0, ""},
		{"version 2 of a service", files("proc/self/cgroup", "0::/system.slice/sluice.service\n",
			"sys/fs/cgroup/system.slice/sluice.service/memory.max", "1000000\n", "sys/fs/cgroup/system.slice/memory.max", "max\n"), 1000000, "sys/fs/cgroup/system.slice/sluice.service/memory.max"},
		{"a smaller one above", files("proc/self/cgroup", "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max", "1000000\n", "sys/fs/cgroup/a/memory.max", "900000\n"), 900000, "sys/fs/cgroup/a/memory.max"},
		{"version 1", files("proc/self/cgroup", "9:name=systemd:/\n4:memory:/docker/abc\n0::/\n",
			"sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "2000000\n"), 2000000, "sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes"},
		{"version 1 as a container sees it", files("proc/self/cgroup", "4:cpu,memory:/docker/abc\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes", "3000000\n"), 3000000, "sys/fs/cgroup/memory/memory.limit_in_bytes"},
		{"version 1 without a limit", files("proc/self/cgroup", "4:memory:/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"), 0, ""},
		{"no memory controller", files("proc/self/cgroup", "4:cpuset:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes", "3000000\n"), 0, ""},
		{"nonsense", files("proc/self/cgroup", "x\n0::/../..\n", "sys/fs/cgroup/memory.max", "-5\n"), 0, ""},
	} {
		if limit, file := containerLimit(tt.root); limit != tt.limit || file != tt.file {
			t.Errorf("%s: %d by %q, want %d by %q", tt.name, limit, file, tt.limit, tt.file)
		}
	}
}

func TestLimitMemory(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	some := files("proc/self/cgroup", "0::/\n", "sys/fs/cgroup/memory.max", "4000000000\n")
	for _, tt := range []struct {
		name   string
		root   fs.FS
		env    map[string]string
		before int64
		want   int64
	}{
		{"a container's", some, nil, math.MaxInt64, 3600000000},
		{"the environment's", some, map[string]string{"GOMEMLIMIT": "off"}, math.MaxInt64, math.MaxInt64},
		{"the program's", some, nil, 5000000000, 5000000000},
		{"none", files(), nil, math.MaxInt64, math.MaxInt64},
	} {
		debug.SetMemoryLimit(tt.before)
		var log bytes.Buffer
		limitMemory(tt.root, environment(tt.env), slog.New(slog.NewTextHandler(&log, nil)))
		if got := debug.SetMemoryLimit(-1); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
		if changed := tt.want != tt.before; strings.Contains(log.String(), "file=/sys/fs/cgroup/memory.max") != changed {
			t.Errorf("%s: log %q", tt.name, log.String())
		}
	}
}
