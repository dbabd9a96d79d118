package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/url"
	"os"
	"path/filepath"
)

// Fingerprint identifies what becomes of records: it changes with routes, sinks, entity
// types and where the services are, and with values of variables in them. It does not
// change with settings of the process, with the content of files that c names, or with
// users and passwords: others can read it.
func (c *Config) Fingerprint() string {
	sinks := maps.Clone(c.Sinks)
	for name, s := range sinks {
		if s.OpenSearch != nil {
			public := *s.OpenSearch
			public.Username, public.Password, public.URLs = "", "", nil
			for _, u := range s.OpenSearch.URLs {
				public.URLs = append(public.URLs, withoutUser(u))
			}
			sinks[name] = Sink{OpenSearch: &public}
		}
	}
	data, err := json.Marshal([]any{c.EntityType, c.AWS, sinks, c.Routes})
	if err != nil {
		panic(err) // of structs of this package
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:4])
}

// withoutUser returns a URL of a valid configuration without user and password.
func withoutUser(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	u.User = nil
	return u.String()
}

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
