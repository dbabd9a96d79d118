package boltstate

import "fmt"

// networkFileSystems are file systems with unreliable locks and memory maps
// between machines, by their magic number on Linux.
var networkFileSystems = map[uint32]string{
	0x6969:     "NFS",
	0x517B:     "SMB",
	0xFE534D42: "SMB2",
	0xFF534D42: "CIFS",
	0x5346414F: "AFS",
	0x6B414653: "AFS",
	0x00C36400: "Ceph",
	0x73757245: "Coda",
	0x564C:     "NCP",
	0x0BD00BD0: "Lustre",
	0x47504653: "GPFS",
	0x7461636F: "OCFS2",
	0x01161970: "GFS2",
	0x01021997: "9P",
}

// refuseNetwork refuses dir on a network file system. It accepts an unknown kind.
func refuseNetwork(dir string, kind func(dir string) (magic uint32, ok bool)) error {
	magic, ok := kind(dir)
	if name := networkFileSystems[magic]; ok && name != "" {
		return fmt.Errorf("%s is on a network file system (%s), which can neither lock it nor keep it whole: name a file on a local disk", dir, name)
	}
	return nil
}
