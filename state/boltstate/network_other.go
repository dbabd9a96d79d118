//go:build !linux

package boltstate

func fileSystem(string) (magic uint32, ok bool) { return 0, false }
