package opensearch

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"testing/synctest"
	"time"
)

func TestHostsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var urls []*url.URL
		for _, host := range []string{"a", "b", "c"} {
			urls = append(urls, &url.URL{Scheme: "http", Host: host})
		}
		h := newHosts(urls)
		expect := func(want string) {
			t.Helper()
			got := ""
			for range len(want) {
				c, err := h.Next()
				if err != nil {
					t.Fatal(err)
				}
				got += c.URL.Host
			}
			if got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
		expect("abcab")
		h.reached("b", false)
		h.reached("x", false)
		expect("caca")
		time.Sleep(time.Second)
		h.reached("a", false)
		h.reached("c", false)
		expect("bb") // all rest; it does so for longest
		h.reached("c", true)
		expect("cc")
		time.Sleep(restTime)
		expect("abc")
	})
}

// A caller that gives up is no sign of a bad host. An unreachable host is left out.
func TestHostThatCannotBeReached(t *testing.T) {
	n := 0
	live := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { n++ }))
	defer live.Close()
	c := connected(t, Connection{URLs: []string{"http://127.0.0.1:1", live.URL}})
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for range 4 {
		if err := c.Call(canceled, "GET", "/", nil, nil); err == nil {
			t.Error("no error")
		}
	}
	failed := 0
	for range 6 {
		if err := c.Call(t.Context(), "GET", "/", nil, nil); err != nil {
			failed++
		}
	}
	if failed != 1 || n != 5 {
		t.Errorf("%d failed, %d answered; want 1 and 5", failed, n)
	}
}
