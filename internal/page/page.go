package page

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/letters"
)

var (
	//go:embed static
	static embed.FS
	//go:embed templates
	texts embed.FS

	// pages are the templates by their name: each file with the frame around it.
	pages = parse()
)

func parse() map[string]*template.Template {
	frame := template.Must(template.New("frame.html").Funcs(funcs).ParseFS(texts, "templates/frame.html", "templates/parts.html"))
	all := make(map[string]*template.Template)
	files, err := fs.Glob(texts, "templates/*.html")
	if err != nil {
		panic(err) // of the pattern
	}
	for _, file := range files {
		name := strings.TrimSuffix(strings.TrimPrefix(file, "templates/"), ".html")
		all[name] = template.Must(template.Must(frame.Clone()).ParseFS(texts, file))
	}
	return all
}

// Static are the files of the pages, under /page/static/. They are the same in every
// daemon: anybody may have them.
func Static() http.Handler {
	files, err := fs.Sub(static, "static")
	if err != nil {
		panic(err) // of the name
	}
	h := http.StripPrefix("/page/static/", http.FileServerFS(files))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secure(w)
		h.ServeHTTP(w, r)
	})
}

// Wanted reports whether a request is a browser's that wants a page. Libraries of HTTP
// accept text/html, too, but not XHTML.
func Wanted(r *http.Request) bool {
	return r.URL.Query().Get("format") == "" && strings.Contains(r.Header.Get("Accept"), "application/xhtml+xml")
}

// Locked answers whoever may not read: reasons are what everybody may know of why the
// daemon is not ready.
func Locked(reasons func(*http.Request) []string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := show(w, http.StatusUnauthorized, "locked", frame{Title: "Locked", Body: reasons(r)}); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
}

// server shows a daemon.
type server struct {
	Daemon
	application string
	fleet       bool
}

// New returns the pages at / and under /page/, and the JSON API under /api/. It answers
// every request: the caller checks who may ask. fleet says that d has other workers.
func New(d Daemon, application string, fleet bool) http.Handler {
	s := &server{d, application, fleet}
	mux := http.NewServeMux()
	get := func(pattern string, h func(http.ResponseWriter, *http.Request) error) {
		mux.HandleFunc("GET "+pattern, func(w http.ResponseWriter, r *http.Request) { s.failed(w, h(w, r)) })
	}
	post := func(pattern string, h func(http.ResponseWriter, *http.Request) error) {
		mux.HandleFunc("POST "+pattern, func(w http.ResponseWriter, r *http.Request) { s.failed(w, ownForm(w, r, h)) })
	}
	get("/{$}", s.overview)
	get("/page/shards", s.shards)
	get("/page/held", s.held)
	get("/page/letters", s.letters)
	get("/page/letters/{id}", s.letter)
	get("/page/gaps", s.gaps)
	get("/page/gaps/{id}", s.confirmGap)
	get("/page/route", s.route)
	get("/page/workers", s.workers)
	get("/page/settings", s.settings)
	post("/page/letters/confirm", s.confirm)
	post("/page/letters/redrive", s.redrive)
	post("/page/letters/purge", s.purge)
	post("/page/gaps/{id}", s.acknowledge)
	post("/page/route/{action}", s.throttle)
	s.api(get)
	return mux
}

const maxForm = 1 << 20

// ownForm has h answer a form of one of these pages. Browsers name the origin of every
// form. The session's cookie is SameSite=Strict, and the guard before this handler
// refuses other origins; a request that names none does not come from a page.
func ownForm(w http.ResponseWriter, r *http.Request, h func(http.ResponseWriter, *http.Request) error) error {
	if r.Header.Get("Sec-Fetch-Site") != "same-origin" && r.Header.Get("Origin") != "http://"+r.Host && r.Header.Get("Origin") != "https://"+r.Host {
		return &Error{http.StatusForbidden, errors.New("this form did not come from the page itself: open the page and try again. Programs use the JSON API")}
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		return &Error{http.StatusBadRequest, fmt.Errorf("the form cannot be read: %w", err)}
	}
	return h(w, r)
}

// Error is an error of the request.
type Error struct {
	Status int // of HTTP
	Err    error
}

func (e *Error) Error() string { return e.Err.Error() }

// StatusOf returns the status of HTTP of an error.
func StatusOf(err error) int {
	if of, ok := errors.AsType[*Error](err); ok {
		return of.Status
	}
	switch {
	case errors.Is(err, deadletter.ErrNotFound):
		return http.StatusNotFound
	case errors.As(err, new(*letters.AmbiguousError)):
		return http.StatusConflict
	}
	return http.StatusInternalServerError
}

// failed shows an error.
func (s *server) failed(w http.ResponseWriter, err error) {
	if err == nil {
		return
	}
	if err := show(w, StatusOf(err), "error", s.frame("Error", "", err.Error())); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// frame is what every page has, around its Body.
type frame struct {
	Title string
	Tab   string // of the navigation
	Live  bool   // it is asked for again and again
	App   string
	Now   time.Time
	Fleet bool
	Body  any
}

func (s *server) frame(title, tab string, body any) frame {
	return frame{Title: title, Tab: tab, App: s.application, Fleet: s.fleet, Now: time.Now(), Body: body}
}

// live is a page that is asked for again and again.
func (s *server) live(w http.ResponseWriter, name, title string, body any) error {
	f := s.frame(title, name, body)
	f.Live = true
	return show(w, http.StatusOK, name, f)
}

// show writes a page once the whole of it is made.
func show(w http.ResponseWriter, status int, name string, f frame) error {
	var b bytes.Buffer
	if err := pages[name].ExecuteTemplate(&b, "frame.html", f); err != nil {
		return err
	}
	secure(w)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // an error is the client's
	return nil
}

// secure forbids the page all but its own files and forms: what an item or an error
// smuggles into it runs nowhere. same-origin, because a browser sends a form with the
// Origin null under no-referrer.
func secure(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}
