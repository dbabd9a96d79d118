package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// listen listens on address. When the port is in use its error says by whom.
func listen(address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err == nil {
		return l, nil
	}
	do := "name another address, or \"off\""
	if errors.Is(err, syscall.EADDRINUSE) {
		if holder := holderOf(address); holder != "" {
			do = "it is held by " + holder + ": stop that, " + do
		}
	}
	return nil, fmt.Errorf("--listen (SLUICE_LISTEN): %w: %s", err, do)
}

// holderOf says which process listens on address, as far as the system and that
// process tell, or "".
func holderOf(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return ""
	}
	n, err := net.LookupPort("tcp", port)
	if err != nil {
		return ""
	}
	process := processOn(os.DirFS("/"), n)
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	name := applicationAt(net.JoinHostPort(host, port))
	switch {
	case name == "":
		return process
	case process == "":
		return fmt.Sprintf("the Sluice daemon of application %q", name)
	}
	return fmt.Sprintf("%s, the Sluice daemon of application %q", process, name)
}

// applicationAt asks a daemon for its application. It needs no token.
func applicationAt(address string) string {
	client := http.Client{
		Timeout:       time.Second,
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the listener must not redirect the token
	}
	resp, err := client.Get("http://" + address + "/livez")
	if err != nil {
		return ""
	}
	_ = resp.Body.Close()
	return resp.Header.Get(ApplicationHeader)
}

// processOn names the process that listens on a port, as Linux has it in /proc;
// "" where that cannot be read, such as of another user's process. When several
// do, at different addresses, it names each.
func processOn(root fs.FS, port int) string {
	var sockets []string
	for _, file := range []string{"proc/net/tcp", "proc/net/tcp6"} {
		table, err := fs.ReadFile(root, file)
		if err != nil {
			continue
		}
		for row := range strings.Lines(string(table)) {
			// Slot, local address, remote address, state (0A: listens), …, inode.
			f := strings.Fields(row)
			if len(f) < 10 || f[3] != "0A" {
				continue
			}
			_, hex, _ := strings.Cut(f[1], ":")
			if n, err := strconv.ParseUint(hex, 16, 16); err == nil && int(n) == port {
				sockets = append(sockets, "socket:["+f[9]+"]")
			}
		}
	}
	if len(sockets) == 0 {
		return ""
	}
	var found []string
	pids, _ := fs.Glob(root, "proc/[0-9]*")
	for _, dir := range pids {
		fds, _ := fs.ReadDir(root, dir+"/fd")
		for _, fd := range fds {
			link, err := fs.ReadLink(root, dir+"/fd/"+fd.Name())
			if err != nil || !slices.Contains(sockets, link) {
				continue
			}
			name, _ := fs.ReadFile(root, dir+"/comm")
			quoted := strconv.Quote(strings.TrimSpace(string(name))) // it may hold anything
			found = append(found, fmt.Sprintf("process %s (%s)", path.Base(dir), quoted[1:len(quoted)-1]))
			break
		}
	}
	return strings.Join(found, " or ")
}
