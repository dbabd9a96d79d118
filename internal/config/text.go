package config

import "regexp"

var (
	passwordOf = regexp.MustCompile(`(?i)(password["']?\s*:\s*)("[^"]*"|'[^']*'|[^\s,}#]+)`)
	userOf     = regexp.MustCompile(`(://)[^\s/@"']+@`)
	plainName  = regexp.MustCompile(`^["']?\$\{\w+\}?["']?$`) // a variable without a default; the brace may be left out
)

// Text is the file as it was loaded, for people: with the names of variables, not their
// values, and without passwords and users of URLs.
func (c *Config) Text() string {
	text := passwordOf.ReplaceAllStringFunc(c.doc.text, func(found string) string {
		parts := passwordOf.FindStringSubmatch(found)
		if plainName.MatchString(parts[2]) {
			return found
		}
		return parts[1] + "…"
	})
	return userOf.ReplaceAllString(text, "${1}…@")
}
