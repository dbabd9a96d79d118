package access

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
)

// AddressFileOf is the path of the address of the daemon that keeps its state in a
// file.
func AddressFileOf(state string) string { return state + ".address" }

// WriteAddress stores where a daemon listens, for the commands of its machine: they
// send the token there alone. The daemon removes the file before it stops to listen:
// a file that a crash has left names a port that is anybody's by now. Only who holds
// the state file may write or remove it.
func WriteAddress(path string, listening net.Addr) error {
	at, err := netip.ParseAddrPort(listening.String())
	if err != nil {
		return fmt.Errorf("address %s is no IP address and port: %w", listening, err)
	}
	if at.Addr().Unmap().IsUnspecified() { // every address of the machine; containers may have no ::1
		at = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), at.Port())
	}
	return Store(path, at.String()+"\n")
}

// RemoveAddress removes the address that the daemon of a state file has left when it
// crashed. Whoever takes the file's lock calls it, daemon or not: the commands take
// the holder of the lock for the daemon that listens there.
func RemoveAddress(state string) error {
	if err := os.Remove(AddressFileOf(state)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the address of a daemon before, where another program may listen now: %w", err)
	}
	return nil
}

// ReadAddress reads the address of a daemon from a file. The file must belong to
// this process's user, to root, or to the owner of the token's file, if given: the
// token is sent to that address. Without a file the error is [fs.ErrNotExist].
func ReadAddress(path, tokenFile string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	const advice = "who would be sent the token: ask as the user of the daemon (sudo -u), or name its address by --daemon"
	if err := checkOwner(path, tokenFile, advice, uint32(os.Geteuid()), ownerOf); err != nil {
		return "", err
	}
	address, err := read(f, path, 100)
	if err != nil {
		return "", err
	}
	if at, err := netip.ParseAddrPort(address); err != nil || at.Port() == 0 {
		return "", fmt.Errorf("%s has no address of a daemon: delete the file and start the daemon again", path)
	}
	return address, nil
}

// Store writes a file that only its owner can read, whole or not at all.
func Store(path, text string) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
