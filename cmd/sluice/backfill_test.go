package main

import "testing"

// What is written into one cluster says nothing about another; who writes it, and
// in which order the hosts are named, is no matter.
func TestBackfillName(t *testing.T) {
	name := func(urls ...string) string {
		return (&target{urls: urls, index: "orders", id: "{pk}", versionAttribute: "rev"}).name()
	}
	first := name("https://a:9200", "https://b:9200")
	if got := name("https://user:secret@b:9200", "https://a:9200"); got != first {
		t.Errorf("%s and %s are one cluster", got, first)
	}
	for _, other := range []string{name("https://c:9200"), name("https://a:9201", "https://b:9200"), name("https://a:9200/search", "https://b:9200")} {
		if other == first {
			t.Errorf("two clusters are %s", other)
		}
	}
	if len(first) > 200 {
		t.Errorf("%s is too long", first)
	}
}
