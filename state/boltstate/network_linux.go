package boltstate

import "syscall"

func fileSystem(dir string) (magic uint32, ok bool) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return 0, false
	}
	return uint32(st.Type), true // the width and sign of Type vary by machine
}
