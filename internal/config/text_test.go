package config

import (
	"strings"
	"testing"
)

// The text of a file has no value of a variable, no password and no user of a URL.
func TestText(t *testing.T) {
	const file = `name: shop # ${NAME}
source: {tables: [orders]}
sinks:
  one: {opensearch: {urls: ["https://someone:hidden1@search.example.com"]}}
  two:
    opensearch:
      urls: [https://search.example.com]
      username: u
      password: hidden2
  three: {opensearch: {urls: [https://search.example.com], username: u, password: "hidden3"}}
  four: {opensearch: {urls: [https://search.example.com], username: u, password: "${WORD}"}}
  five: {opensearch: {urls: [https://search.example.com], username: u, password: ${WORD:-hidden4}}}
  queue: {sqs: {queue: jobs}}
routes:
  - {name: send, on: "*#*", send: {to: queue, body: record}}
`
	c := &Config{doc: &source{text: file}}
	got := c.Text()
	if strings.Contains(got, "hidden") || strings.Contains(got, "someone") {
		t.Errorf("%s", got)
	}
	for _, want := range []string{"name: shop # ${NAME}\n", "https://…@search.example.com", "      password: …\n", `password: "${WORD}"}}`, "on: \"*#*\""} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
	loaded, err := Parse("f", ".", []byte("name: ${NAME}\nsource: {tables: [orders]}\nsinks: {queue: {sqs: {queue: jobs}}}\nroutes: [{name: send, on: order#INSERT, send: {to: queue, body: record}}]\n"), func(string) (string, bool) { return "hidden", true })
	if err != nil || loaded.Name != "hidden" || !strings.HasPrefix(loaded.Text(), "name: ${NAME}\n") {
		t.Errorf("%v, %q", err, loaded.Text())
	}
}
