package access

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const token = "a-token-of-20-letters"

func kept() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "kept") })
}

// ask sends a request as one of the same machine would.
func ask(h http.Handler, method, path string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://127.0.0.1:9464"+path, nil)
	r.RemoteAddr = "127.0.0.1:5"
	for _, f := range change {
		f(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func bearer(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }

func TestProtect(t *testing.T) {
	h := NewGuard(token, "sluice.example.com", "other.example.com:8443").Protect(kept())
	for name, c := range map[string]struct {
		method string
		change func(*http.Request)
		code   int
	}{
		"the token":                       {"GET", bearer, 200},
		"none, from this machine":         {"GET", func(*http.Request) {}, 401},
		"none, through a proxy":           {"DELETE", func(r *http.Request) { r.Header.Set("X-Forwarded-For", "203.0.113.9") }, 401},
		"another":                         {"GET", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token+"x") }, 401},
		"an empty one":                    {"GET", func(r *http.Request) { r.Header.Set("Authorization", "Bearer ") }, 401},
		"a password":                      {"GET", func(r *http.Request) { r.SetBasicAuth("x", token) }, 401},
		"in the URL":                      {"GET", func(r *http.Request) { r.URL.RawQuery = "token=" + token }, 401},
		"a made-up session":               {"GET", func(r *http.Request) { r.AddCookie(&http.Cookie{Name: "sluice-9464", Value: "x"}) }, 401},
		"a name that leads here":          {"GET", func(r *http.Request) { bearer(r); r.Host = "rebound.example.com:9464" }, 403},
		"localhost":                       {"GET", func(r *http.Request) { bearer(r); r.Host = "localhost:9464" }, 200},
		"an IPv6 address":                 {"GET", func(r *http.Request) { bearer(r); r.Host = "[::1]:9464" }, 200},
		"a pod's address":                 {"GET", func(r *http.Request) { bearer(r); r.Host = "10.1.2.3:9464" }, 200},
		"the name of a proxy":             {"GET", func(r *http.Request) { bearer(r); r.Host = "sluice.example.com" }, 200},
		"it on any port":                  {"GET", func(r *http.Request) { bearer(r); r.Host = "sluice.example.com:444" }, 200},
		"one on another port":             {"GET", func(r *http.Request) { bearer(r); r.Host = "other.example.com" }, 403},
		"one on its port":                 {"GET", func(r *http.Request) { bearer(r); r.Host = "other.example.com:8443" }, 200},
		"a change from a page":            {"POST", func(r *http.Request) { bearer(r); r.Header.Set("Origin", "http://example.com") }, 403},
		"a change from another site":      {"DELETE", func(r *http.Request) { bearer(r); r.Header.Set("Sec-Fetch-Site", "cross-site") }, 403},
		"a change from its own page":      {"POST", func(r *http.Request) { bearer(r); r.Header.Set("Sec-Fetch-Site", "same-origin") }, 200},
		"a look from a page":              {"GET", func(r *http.Request) { bearer(r); r.Header.Set("Origin", "http://example.com") }, 403},
		"a look from another port's page": {"GET", func(r *http.Request) { bearer(r); r.Header.Set("Sec-Fetch-Site", "same-site") }, 403},
		"a look from its own page":        {"GET", func(r *http.Request) { bearer(r); r.Header.Set("Sec-Fetch-Site", "same-origin") }, 200},
		"an address that somebody types":  {"GET", func(r *http.Request) { bearer(r); r.Header.Set("Sec-Fetch-Site", "none") }, 200},
		"a link on another page": {"GET", func(r *http.Request) {
			bearer(r)
			r.Header.Set("Sec-Fetch-Site", "same-site")
			r.Header.Set("Sec-Fetch-Mode", "navigate")
			r.Header.Set("Sec-Fetch-Dest", "document")
		}, 200},
		"a frame on another page": {"GET", func(r *http.Request) {
			bearer(r)
			r.Header.Set("Sec-Fetch-Site", "same-site")
			r.Header.Set("Sec-Fetch-Mode", "navigate")
			r.Header.Set("Sec-Fetch-Dest", "iframe")
		}, 403},
		"a form on another page": {"POST", func(r *http.Request) {
			bearer(r)
			r.Header.Set("Sec-Fetch-Site", "same-site")
			r.Header.Set("Sec-Fetch-Mode", "navigate")
			r.Header.Set("Sec-Fetch-Dest", "document")
		}, 403},
		"a change from a page of the proxy": {"POST", func(r *http.Request) {
			bearer(r)
			r.Header.Set("Origin", "https://sluice.example.com")
		}, 200},
	} {
		w := ask(h, c.method, "/lanes", c.change)
		if w.Code != c.code || (w.Body.String() == "kept") != (c.code == 200) {
			t.Errorf("%s: %d %s, want %d", name, w.Code, w.Body, c.code)
		}
		if w.Code == 200 && w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: a browser may take the answer for another type", name)
		}
		if strings.Contains(w.Body.String(), token) {
			t.Errorf("%s: the answer has the token", name)
		}
	}
}

// cookieOf is the session that a browser keeps.
func cookieOf(t *testing.T, w *httptest.ResponseRecorder) *http.Cookie {
	t.Helper()
	all := w.Result().Cookies()
	if len(all) != 1 {
		t.Fatalf("%d: cookies %v", w.Code, all)
	}
	return all[0]
}

func TestSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGuard(token)
		h, sessions := g.Protect(kept()), g.Sessions()
		link := func() string {
			t.Helper()
			var l Link
			w := ask(sessions, "POST", "/session", bearer)
			if err := json.Unmarshal(w.Body.Bytes(), &l); err != nil || w.Code != 200 || strings.Contains(l.Path, token) {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			return l.Path
		}
		if w := ask(sessions, "POST", "/session"); w.Code != 401 {
			t.Errorf("a link without the token: %d", w.Code)
		}
		first := link()
		for _, method := range []string{"HEAD", "GET", "GET"} { // a preview, a proxy, a browser that fetches ahead
			if w := ask(sessions, method, first); w.Code != 200 || len(w.Result().Cookies()) != 0 {
				t.Errorf("%s of a link: %d, %v", method, w.Code, w.Result().Cookies())
			}
		}
		page := ask(sessions, "GET", first)
		if text := page.Body.String(); !strings.Contains(text, `<form method="post">`) || !strings.Contains(text, "<button") || strings.Contains(text, "<script") {
			t.Errorf("the page of a link: %s", text)
		}
		for header, want := range map[string]string{"Cache-Control": "no-store", "Referrer-Policy": "same-origin", "Content-Security-Policy": "frame-ancestors 'none'"} {
			if got := page.Header().Get(header); !strings.Contains(got, want) {
				t.Errorf("%s: %q", header, got)
			}
		}
		for what, change := range map[string]func(*http.Request){
			"another host":     func(r *http.Request) { r.Host = "rebound.example.com" },
			"another site":     func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
			"another origin":   func(r *http.Request) { r.Header.Set("Origin", "http://example.com") },
			"a hidden origin":  func(r *http.Request) { r.Header.Set("Origin", "null") },
			"a form elsewhere": func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") },
		} {
			if w := ask(sessions, "POST", first, change); w.Code != 403 || len(w.Result().Cookies()) != 0 {
				t.Errorf("the button of %s: %d", what, w.Code)
			}
		}
		// Browsers send the form without Sec-Fetch headers to an address that is not
		// HTTPS and not of this machine.
		w := ask(sessions, "POST", first, func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:9464") })
		c := cookieOf(t, w)
		if w.Code != 303 || w.Header().Get("Location") != "/" || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.MaxAge != 12*3600 || c.Name != "sluice-9464" || c.Value == token {
			t.Errorf("%d %+v", w.Code, c)
		}
		for _, method := range []string{"GET", "POST"} {
			if w := ask(sessions, method, first); w.Code != 401 || len(w.Result().Cookies()) != 0 || !strings.Contains(w.Body.String(), "sluice open") || strings.Contains(w.Body.String(), "<form") {
				t.Errorf("%s: a link works twice: %d", method, w.Code)
			}
		}
		late := link()
		time.Sleep(time.Minute)
		for _, method := range []string{"GET", "POST"} {
			if w := ask(sessions, method, late); w.Code != 401 || len(w.Result().Cookies()) != 0 {
				t.Errorf("%s: a link works after a minute: %d", method, w.Code)
			}
		}
		browser := func(r *http.Request) { r.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value}) }
		if w := ask(h, "GET", "/", browser); w.Code != 200 {
			t.Errorf("the session does not work: %d", w.Code)
		}
		if w := ask(h, "DELETE", "/deadletters", browser, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }); w.Code != 403 {
			t.Errorf("another page uses the session: %d", w.Code)
		}
		time.Sleep(12 * time.Hour)
		if w := ask(h, "GET", "/", browser); w.Code != 401 {
			t.Errorf("the session works after 12 hours: %d", w.Code)
		}
		paths := []string{link()}
		for range mostLinks {
			paths = append(paths, link())
		}
		if w := ask(sessions, "POST", paths[0]); w.Code != 401 {
			t.Errorf("%d links at a time: the first: %d", len(paths), w.Code)
		}
		if w := ask(sessions, "POST", paths[mostLinks], func(r *http.Request) { r.Header.Set("X-Forwarded-Proto", "https") }); w.Code != 303 || !cookieOf(t, w).Secure {
			t.Errorf("through a proxy with TLS: %d", w.Code)
		}
	})
}
