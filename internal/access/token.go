// Package access decides who may see and change a daemon's data: holders of its
// token. A request from the same machine proves nothing. It may come from a proxy,
// another container of a pod, or another user.
package access

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

const (
	// TokenEnv is the variable that holds a token.
	TokenEnv = "SLUICE_TOKEN"
	// TokenFileEnv is the variable that names a token's file.
	TokenFileEnv = "SLUICE_TOKEN_FILE"

	// LetterKeyEnv is the variable that holds keys of dead letters.
	LetterKeyEnv = "SLUICE_LETTER_KEY"
	// LetterKeyFileEnv is the variable that names a file of such keys.
	LetterKeyFileEnv = "SLUICE_LETTER_KEY_FILE"

	leastToken = 16 // characters
	maxToken   = 4 << 10
)

// FileOf is the path of the token of the daemon that keeps its state in a file.
func FileOf(state string) string { return state + ".token" }

// Make reads the token in the file at path. If the file is missing, it creates one
// with a random token, readable by its owner only. Only one process at a time may
// call it for a path. It refuses a file of another user than this process's, root
// or the owner of the folder: that user would know the token.
func Make(path string) (string, error) {
	if err := checkTokenOwner(path, uint32(os.Geteuid()), ownerOf); err != nil {
		return "", err
	}
	token, err := Read(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return token, err
	}
	token = rand.Text()
	if err := Store(path, token+"\n"); err != nil {
		return "", fmt.Errorf("the token that its operators need cannot be stored: %w", err)
	}
	return token, nil
}

func checkTokenOwner(path string, me uint32, ownerOf func(path string) (uint32, error)) error {
	folder := filepath.Dir(path) + "/." // the folder itself, where its name is a link
	err := checkOwner(path, folder, "who may know the token: delete the file", me, ownerOf)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// checkOwner refuses a file of another user than root, me, or the owner of trusted, if
// that is given and there. advice says why, and what to do.
func checkOwner(path, trusted, advice string, me uint32, ownerOf func(path string) (uint32, error)) error {
	owner, err := ownerOf(path)
	if err != nil {
		return err
	}
	users := []uint32{0, me}
	if trusted != "" {
		of, err := ownerOf(trusted)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err == nil {
			users = append(users, of)
		}
	}
	if !slices.Contains(users, owner) {
		return fmt.Errorf("%s belongs to another user (%d), %s", path, owner, advice)
	}
	return nil
}

// Read reads the token in the file at path, which others than its owner and its
// group may not read. Without a file the error is [fs.ErrNotExist].
func Read(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	token, err := read(f, path, maxToken)
	if err != nil {
		return "", err
	}
	if err := Check(token); err != nil {
		return "", fmt.Errorf("token file %s: %w", path, err)
	}
	return token, nil
}

// read reads the text of a file that others may not read.
func read(f *os.File, path string, most int64) (string, error) {
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if err := checkMode(path, info); err != nil { // of the file that is open, whatever has its name now
		return "", err
	}
	data, err := io.ReadAll(io.LimitReader(f, most))
	return strings.TrimSpace(string(data)), err
}

// CheckMode refuses a file that everybody on this machine may read or write.
// Rights of a group are accepted: Kubernetes sets them on volumes (fsGroup). Where
// files have no such modes, it refuses none.
func CheckMode(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return checkMode(path, info)
}

func checkMode(path string, info fs.FileInfo) error {
	if mode := info.Mode(); mode.IsRegular() && mode&0o007 != 0 && runtime.GOOS != "windows" {
		return fmt.Errorf("%s has mode %04o, so that everybody on this machine may use it: chmod o= %[1]s", path, mode.Perm())
	}
	return nil
}

// Check returns the mistakes of a user's token.
func Check(token string) error {
	if len(token) < leastToken {
		return fmt.Errorf("a token has %d characters at least, such as those of openssl rand -hex 16", leastToken)
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return errors.New("a token has letters, digits and punctuation of ASCII alone")
	}
	return nil
}
