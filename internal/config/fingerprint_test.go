package config

import (
	"strings"
	"testing"
)

// Two files with the same fingerprint do the same with records.
func TestFingerprint(t *testing.T) {
	const text = `
name: shop
source: {tables: [orders]}
sinks: {jobs: {sqs: {queue: jobs}}, search: {opensearch: {urls: ["${SEARCH}"]}}}
routes:
  - {name: send, on: "order#*", when: new.total > 1, send: {to: jobs}}
  - {name: index, on: "order#*", project: {id: "{id}", index: shop, version: sequence}}
daemon: {listen: "off"}
limits: {concurrency: 7}
`
	of := func(text, search string) string {
		t.Helper()
		c, err := Parse("sluice.yaml", t.TempDir(), []byte(text), func(string) (string, bool) { return search, true })
		if err != nil {
			t.Fatal(err)
		}
		return c.Fingerprint()
	}
	first := of(text, "https://a")
	if len(first) != 8 {
		t.Errorf("%q is no fingerprint", first)
	}
	for _, tt := range []struct {
		old, new string
		same     bool
	}{
		{"", "", true},
		{`"off"`, `":9464"`, true},
		{"concurrency: 7", "concurrency: 8", true},
		{"name: shop", "name: other", true},
		{"tables: [orders]", "tables: [orders, lines]", true},
		{"name: send", "name: other", false},
		{"total > 1", "total > 2", false},
		{"index: shop", "index: other", false},
		{"queue: jobs", "queue: other", false},
		{"limits:", "aws: {region: eu-west-1}\nlimits:", false},
		{"limits:", "entityType: kind\nlimits:", false},
	} {
		if got := of(strings.Replace(text, tt.old, tt.new, 1), "https://a"); (got == first) != tt.same {
			t.Errorf("%q in place of %q: %s, before %s", tt.new, tt.old, got, first)
		}
	}
	if got := of(text, "https://b"); got == first {
		t.Error("another value of a variable leaves the fingerprint")
	}
	if got := of(text, "https://user:secret@a"); got != first {
		t.Error("a password is in the fingerprint")
	}
	withPassword := strings.Replace(text, `"]}}}`, `"], username: user, password: "${SECRET}"}}}`, 1)
	if a, b := of(withPassword, "https://a"), of(withPassword, "https://a?"); a != first || b == first {
		t.Error("username and password change the fingerprint, or the URL does not")
	}
}
