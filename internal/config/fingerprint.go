package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/url"
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
