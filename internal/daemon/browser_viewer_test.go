//go:build integration

package daemon

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/sluicehq/sluice/internal/browsertest"
	"github.com/sluicehq/sluice/internal/localtest"
)

// viewer looks at the pages of a daemon in a browser.
type viewer struct {
	t    *testing.T
	base string
	axe  chromedp.Action[[]string]
	*browsertest.Tab
}

func newViewer(t *testing.T, base string) *viewer {
	t.Helper()
	axe, err := browsertest.Axe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tab, err := browsertest.Start(context.WithoutCancel(t.Context())) // Close ends it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tab.Close)
	return &viewer{t, base, axe, tab}
}

// another opens another tab, with the same cookies.
func (v *viewer) another() *viewer {
	v.t.Helper()
	tab, err := v.Another()
	if err != nil {
		v.t.Fatal(err)
	}
	v.t.Cleanup(tab.Close)
	return &viewer{v.t, v.base, v.axe, tab}
}

// seen runs an action and returns its value.
func seen[T any](v *viewer, a chromedp.Action[T]) T {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(v.Context, localtest.Patience)
	defer cancel()
	value, err := chromedp.Run(ctx, a)
	if err != nil {
		where, _ := chromedp.Run(v.Context, chromedp.Evaluate[string]("location.pathname + ': ' + document.body.innerText.slice(0, 1000)"))
		v.t.Fatalf("%v, at %s", err, where)
	}
	return value
}

// open shows a page of the daemon.
func (v *viewer) open(path string) {
	v.t.Helper()
	seen(v, chromedp.Navigate(v.base+path))
}

// click clicks an element, and waits for another.
func (v *viewer) click(what, then string) {
	v.t.Helper()
	seen(v, chromedp.Steps(chromedp.Click(chromedp.CSS(what)), chromedp.WaitVisible(chromedp.CSS(then))))
}

// text is the text of an element that the page shows or will show. It asks in one step:
// the page replaces its elements.
func (v *viewer) text(of string) (text string) {
	v.t.Helper()
	localtest.Await(v.t, "the page shows "+of, func() string {
		text = seen(v, chromedp.Evaluate[string](fmt.Sprintf(`(e => e?.checkVisibility() ? e.innerText : "")(document.querySelector(%q))`, of)))
		return map[bool]string{true: "nothing is there"}[text == ""]
	})
	return text
}

func (v *viewer) wants(of string, texts ...string) {
	v.t.Helper()
	got := v.text(of)
	for _, want := range texts {
		if !strings.Contains(got, want) {
			v.t.Errorf("%s has no %q: %s", of, want, got)
		}
	}
}

// looks checks the page that is shown: axe-core finds nothing in light and in dark, and
// a telephone scrolls it in one direction. The page does not refresh itself any more.
func (v *viewer) looks(page string) {
	v.t.Helper()
	seen(v, chromedp.Evaluate[chromedp.Void](`new Promise(done => document.readyState === "complete" ? done() : addEventListener("load", done)).then(
		() => document.querySelectorAll("[data-live]").forEach(e => e.removeAttribute("data-live")))`, chromedp.EvalAwaitPromise)) // with its style
	seen(v, chromedp.EmulateViewport(1200, 900))
	for _, scheme := range []string{"dark", "light"} {
		seen(v, chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
			_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
			return err
		}))
		for _, breach := range seen(v, v.axe) {
			v.t.Errorf("%s, %s: %s", page, scheme, breach)
		}
	}
	seen(v, chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile))
	const wider = `[...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > 390).slice(0, 3).map(e => e.outerHTML.slice(0, 200)).join("\n")`
	if width := seen(v, chromedp.Evaluate[int]("document.documentElement.scrollWidth")); width > 390 {
		v.t.Errorf("%s is %d pixels wide: %s", page, width, seen(v, chromedp.Evaluate[string](wider)))
	}
	v.harmless(page)
}

// harmless checks that no text of an item or an error did anything.
func (v *viewer) harmless(page string) {
	v.t.Helper()
	if seen(v, chromedp.Evaluate[bool](`"obeyed" in window`)) {
		v.t.Errorf("%s: a script of an item has run", page)
	}
	for _, problem := range v.Problems() {
		v.t.Errorf("%s: %s", page, problem)
	}
}

// sink takes what the routes send to /ROUTE?id=ID.
type sink struct {
	*httptest.Server

	mu       sync.Mutex
	statuses map[string]int // of routes; 0: ok
	got      []string       // routes and ids
}

func newSink(t *testing.T) *sink {
	s := &sink{statuses: make(map[string]int)}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if status := s.statuses[r.URL.Path]; status != 0 {
			http.Error(w, hostile+" refused", status)
			return
		}
		s.got = append(s.got, r.URL.Path+" "+r.FormValue("id"))
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *sink) answer(route string, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.statuses[route] = status
}

// took reports whether a route has sent an id.
func (s *sink) took(route, id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.got {
		if one == route+" "+id {
			return true
		}
	}
	return false
}
