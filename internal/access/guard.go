package access

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	linkLife    = time.Minute
	sessionLife = 12 * time.Hour
	mostLinks   = 16 // at a time; the oldest goes
	mostBrowser = 64
)

// Guard lets requests through that prove by the token who they are from. It is
// safe for concurrent use.
type Guard struct {
	token [sha256.Size]byte
	hosts []string
	cross *http.CrossOriginProtection

	mu       sync.Mutex
	links    secrets // each opens a session, once
	sessions secrets // of browsers
}

// secrets are known by their hashes, so that comparing them tells nothing, and end
// at a time; the oldest comes first.
type secrets []secret

type secret struct {
	hash [sha256.Size]byte
	ends time.Time
}

// NewGuard returns one for a token. hosts are the names under which a proxy serves
// the daemon: others than addresses and localhost are refused, since a page whose
// name leads to this machine could ask in the name of a browser's user.
func NewGuard(token string, hosts ...string) *Guard {
	g := &Guard{token: sha256.Sum256([]byte(token)), hosts: hosts, cross: http.NewCrossOriginProtection()}
	for _, host := range hosts {
		for _, scheme := range []string{"http://", "https://"} {
			_ = g.cross.AddTrustedOrigin(scheme + host)
		}
	}
	return g
}

// Protect answers by h those who have the token, or a browser's session.
func (g *Guard) Protect(h http.Handler) http.Handler {
	return g.ProtectOr(h, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "this needs the token of the daemon: sluice open opens a browser; other programs send the header Authorization: Bearer TOKEN", http.StatusUnauthorized)
	}))
}

// ProtectOr is Protect, with an answer for the others.
func (g *Guard) ProtectOr(h, others http.Handler) http.Handler {
	return g.named(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !g.Knows(r) {
			others.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		h.ServeHTTP(w, r)
	}))
}

// Knows reports whether a request has the token, or a browser's session.
func (g *Guard) Knows(r *http.Request) bool {
	if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		hash := sha256.Sum256([]byte(strings.TrimSpace(token)))
		return subtle.ConstantTimeCompare(hash[:], g.token[:]) == 1
	}
	c, err := r.Cookie(cookieName(r))
	if err != nil {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.sessions.find(c.Value) >= 0
}

// named refuses requests that are meant for another host, or that another's page makes.
func (g *Guard) named(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := g.ofOthers(r); err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		u := url.URL{Host: r.Host}
		if host := u.Hostname(); net.ParseIP(host) == nil && host != "localhost" && !slices.Contains(g.hosts, r.Host) && !slices.Contains(g.hosts, host) {
			http.Error(w, fmt.Sprintf("the host %q is not known: ask for the daemon by its address, or start it with --allow-host", r.Host), http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// ofOthers returns an error for a request from a page of another origin, with any
// method: a browser sends a cookie to every port of its host. A followed link on
// such a page counts as the user's request.
func (g *Guard) ofOthers(r *http.Request) error {
	if r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document" {
		return nil
	}
	strict := r.WithContext(r.Context())
	strict.Method = http.MethodPost // the check lets every GET through
	return g.cross.Check(strict)
}

// Link is the answer of POST /session: the path of a link whose page opens a browser's
// session by a button, once and within a minute.
type Link struct {
	Path string `json:"path"`
}

// Sessions answers POST /session and, of a link, GET and POST /session/CODE.
func (g *Guard) Sessions() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /session", g.Protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		code := rand.Text()
		g.mu.Lock()
		g.links.add(code, linkLife, mostLinks)
		g.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(Link{Path: "/session/" + code}) // an error is the client's
	})))
	mux.Handle("GET /session/{code}", g.named(http.HandlerFunc(g.offer)))
	mux.Handle("POST /session/{code}", g.named(http.HandlerFunc(g.enter)))
	return mux
}

// linkPage is a form without scripts. Programs that follow links, such as the
// preview of a chat, a proxy or a prefetching browser, use GET and must not use
// the link up. The form's action is the link itself.
const (
	linkPage = pageStart + `<main><h1>Open Sluice</h1><form method="post"><p>This link opens Sluice in this browser for 12 hours. It works once.</p><button autofocus>Open Sluice</button></form></main></html>
`
	usedPage = pageStart + `<main><h1>This link does not work any more</h1><p>It was used, or is older than a minute. Make another:</p><pre><code>sluice open</code></pre></main></html>
`
	// The style is that of package page.
	pageStart = `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>Sluice</title><link rel="stylesheet" href="/page/static/style.css">
`
)

// LinkFile is the text of an HTML file that leads a browser to a link.
func LinkFile(link string) string {
	return fmt.Sprintf("<!doctype html><meta charset=\"utf-8\"><title>Sluice</title><meta http-equiv=\"refresh\" content=\"0; url=%s\"><a href=\"%[1]s\">Open Sluice</a>\n", html.EscapeString(link))
}

// offer answers the GET of a link, which changes nothing.
func (g *Guard) offer(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	there := g.links.find(r.PathValue("code")) >= 0
	g.mu.Unlock()
	private(w)
	if !there {
		refuseLink(w)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, linkPage) // an error is the client's
}

// enter takes a link for a session.
func (g *Guard) enter(w http.ResponseWriter, r *http.Request) {
	session := rand.Text()
	g.mu.Lock()
	i := g.links.find(r.PathValue("code"))
	if i >= 0 {
		g.links = slices.Delete(g.links, i, i+1)
		g.sessions.add(session, sessionLife, mostBrowser)
	}
	g.mu.Unlock()
	private(w)
	if i < 0 {
		refuseLink(w)
		return
	}
	http.SetCookie(w, &http.Cookie{
		Name: cookieName(r), Value: session, Path: "/", MaxAge: int(sessionLife / time.Second),
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https",
	})
	http.Redirect(w, r, "/", http.StatusSeeOther) // of its own page: a browser sends the cookie with it
}

func refuseLink(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(http.StatusUnauthorized)
	_, _ = io.WriteString(w, usedPage) // an error is the client's
}

// private keeps a page of a link out of caches, frames and other sites' Referer. With
// no-referrer, a browser would send its form with the Origin null, which is refused.
func private(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
}

// cookieName differs by port, as cookies do not.
func cookieName(r *http.Request) string {
	_, port, _ := net.SplitHostPort(r.Host)
	return strings.TrimSuffix("sluice-"+port, "-")
}

// add keeps s for so long, and most at a time.
func (all *secrets) add(s string, life time.Duration, most int) {
	now := time.Now()
	*all = slices.DeleteFunc(*all, func(one secret) bool { return !now.Before(one.ends) })
	if n := len(*all) + 1 - most; n > 0 {
		*all = slices.Delete(*all, 0, n)
	}
	*all = append(*all, secret{sha256.Sum256([]byte(s)), now.Add(life)})
}

// find returns where s is, or -1.
func (all secrets) find(s string) int {
	hash := sha256.Sum256([]byte(s))
	now := time.Now()
	return slices.IndexFunc(all, func(one secret) bool { return one.hash == hash && now.Before(one.ends) })
}
