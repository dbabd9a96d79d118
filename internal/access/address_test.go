package access

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestAddress(t *testing.T) {
	path := AddressFileOf(filepath.Join(t.TempDir(), "sluice.db"))
	if _, err := ReadAddress(path, ""); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("none: %v", err)
	}
	for listening, want := range map[string]string{
		"127.0.0.1:9464": "127.0.0.1:9464",
		"[::1]:9464":     "[::1]:9464",
		"10.1.2.3:80":    "10.1.2.3:80",
		"0.0.0.0:9464":   "127.0.0.1:9464",
		"[::]:9464":      "127.0.0.1:9464", // --listen :9464
		"[fe80::1%lo]:1": "[fe80::1%lo]:1",
	} {
		at, err := net.ResolveTCPAddr("tcp", listening)
		if err != nil {
			t.Fatal(err)
		}
		if err := WriteAddress(path, at); err != nil {
			t.Fatal(err)
		}
		if got, err := ReadAddress(path, ""); got != want || err != nil {
			t.Errorf("%s: %q, %v, want %q", listening, got, err, want)
		}
		if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
	}
	for _, text := range []string{"", "9464", "localhost:9464", "example.com:80", "127.0.0.1:0", "127.0.0.1:9464/x", "user@127.0.0.1:9464"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := ReadAddress(path, ""); err == nil {
			t.Errorf("%q: %q", text, got)
		}
	}
	if runtime.GOOS != "windows" {
		if err := errors.Join(os.WriteFile(path, []byte("127.0.0.1:9464"), 0o600), os.Chmod(path, 0o602)); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadAddress(path, ""); err == nil || !strings.Contains(err.Error(), "chmod o=") {
			t.Errorf("everybody may write it: %v", err)
		}
	}
}

// The address file of a crashed daemon is removed. A missing file is no error.
func TestRemoveAddress(t *testing.T) {
	state := filepath.Join(t.TempDir(), "sluice.db")
	for range 2 {
		if err := RemoveAddress(state); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(AddressFileOf(state)); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
		if err := WriteAddress(AddressFileOf(state), &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9464}); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(AddressFileOf(state)); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(AddressFileOf(state), "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := RemoveAddress(state); err == nil {
		t.Error("one that cannot be removed is no error")
	}
}

// The owners of an address file that may decide where the token goes.
func TestAddressOwner(t *testing.T) {
	const root, me, daemon, stranger = 0, 501, 502, 503
	for _, c := range []struct {
		address, token uint32
		me             uint32
		named          bool // the token's file
		ok             bool
	}{
		{me, 0, me, false, true},
		{root, 0, me, false, true},
		{stranger, 0, me, false, false},
		{stranger, me, me, true, false},
		{daemon, daemon, me, true, true},
		{daemon, daemon, root, true, true},
		{daemon, 0, root, false, false},
	} {
		token := ""
		if c.named {
			token = "token"
		}
		err := checkOwner("address", token, "", c.me, func(path string) (uint32, error) {
			if path == "token" {
				return c.token, nil
			}
			return c.address, nil
		})
		if (err == nil) != c.ok {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
