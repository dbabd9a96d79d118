package config

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
)

// Digest identifies the content of the file at path and of the files that it names. It
// checks nothing: a file that Load refuses has a digest, too.
func Digest(path string, env func(string) (string, bool)) (string, error) {
	text, err := readFile(path)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	all := sum[:]
	files, _ := Files(path, env) // of a file that cannot be read, none
	for _, name := range files {
		if !filepath.IsAbs(name) {
			name = filepath.Join(filepath.Dir(path), name)
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return "", err
		}
		one := sha256.Sum256(text)
		all = append(all, one[:]...)
	}
	sum = sha256.Sum256(all)
	return hex.EncodeToString(sum[:]), nil
}
