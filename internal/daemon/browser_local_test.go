//go:build integration

package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/access"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/streamtest"
)

// hostile is text that a page must show and never obey.
const hostile = `"'></textarea></code></pre></title><script>window.obeyed = 1; alert(1)</script><img src=x onerror="window.obeyed = 1">` +
	`<meta http-equiv="refresh" content="0;url=/page/gaps"><base href="/elsewhere/"><style>body { display: none }</style><a href="javascript:alert(2)">{{.}}` + "\x1b[2J\x00\u202e\u2028"

func init() {
	// shop sends what happens to a sink of the test.
	children["shop"] = App{Name: "shop", Routes: func(_ context.Context, s Setup) (sluice.Matcher, error) {
		to := func(route string) func(context.Context, *sluice.Record) error {
			return func(_ context.Context, rec *sluice.Record) error {
				id, _ := rec.Keys.Lookup("id")
				resp, err := http.PostForm(s.Env("SINK")+route, url.Values{"id": {id.Str()}})
				if err != nil {
					return err
				}
				defer resp.Body.Close()
				text, err := io.ReadAll(resp.Body)
				switch {
				case err != nil || resp.StatusCode == http.StatusOK:
					return err
				case resp.StatusCode == http.StatusUnprocessableEntity:
					return sluice.Permanent(errors.New(string(text)))
				}
				return errors.New(string(text))
			}
		}
		r := router.New()
		r.Handle("order#*", to("/mail"), router.Name("mail"), router.Redrive())
		r.Handle("product#*", to("/search"), router.Name("search"))
		return r, nil
	}}
}

// startShop starts a daemon in trouble: a gap, two dead letters, and an outage.
func startShop(t *testing.T, s *sink) *child {
	t.Helper()
	noAWS(t)
	svc := streamtest.NewService(t)
	table := svc.CreateTable("orders", streamtest.TableOptions{PartitionKey: "id", OpaqueShardIDs: true}) // a shard may be old enough to lose records
	args := []string{"--table", "orders", "--start", "TRIM_HORIZON", "--listen", "127.0.0.1:0", "--log-level", "debug", "--grace", "1s",
		"--state", filepath.Join(t.TempDir(), "state.db"), "--endpoint-dynamodb", svc.URL()}
	order := func(id string) {
		table.Put(map[string]any{"id": id, "entityType": "order", hostile: hostile, "long": strings.Repeat(hostile, 390_000/len(hostile))})
	}
	order("first")
	c := startChild(t, "shop", []string{"SINK=" + s.URL}, args...)
	c.until("msg=handled", 1)
	c.signal(syscall.SIGTERM)
	c.exit()

	s.answer("/mail", http.StatusUnprocessableEntity)
	s.answer("/search", http.StatusServiceUnavailable)
	order("lost")
	order(hostile)
	table.Trim(table.Shards()[0].ID, 2)
	order(hostile + "2")
	c = startChild(t, "shop", []string{"SINK=" + s.URL}, args...)
	products := 0
	localtest.Await(t, "the daemon is in trouble", func() string {
		products++ // new items fail, too: it is an outage
		table.Put(map[string]any{"id": fmt.Sprint(hostile, products), "entityType": "product"})
		_, ready := c.ask("GET", "/readyz")
		_, letters := c.ask("GET", "/deadletters?kind=record")
		if strings.Contains(ready, "trimmed") && strings.Contains(ready, `route "search" fails for every record`) && strings.Count(letters, `"kind":"record"`) == 2 {
			return ""
		}
		return ready + letters
	})
	return c
}

// link makes a link, as sluice open does.
func link(c *child) string {
	c.t.Helper()
	_, made := c.ask("POST", "/session")
	var link access.Link
	if err := json.Unmarshal([]byte(made), &link); err != nil {
		c.t.Fatal(err)
	}
	return link.Path
}

// A person finds what is wrong, and clicks it right. What items and errors hold does
// nothing, and everybody can read every page.
func TestPageInABrowser(t *testing.T) {
	s := newSink(t)
	c := startShop(t, s)
	_, rest, _ := strings.Cut(c.output(), "msg=listening address=")
	address, _, _ := strings.Cut(rest, "\n")
	v := newViewer(t, "http://"+address)
	other := v.another()

	v.open("/")
	v.wants("h1", "This page needs a session")
	v.looks("locked")
	path := link(c)
	other.open(path)
	other.looks("link")
	file := filepath.Join(t.TempDir(), "open.html")
	if err := os.WriteFile(file, []byte(access.LinkFile(v.base+path)), 0o600); err != nil {
		t.Fatal(err)
	}
	seen(v, chromedp.Navigate("file://"+file))
	v.click("form button", "#verdict")
	other.click("form button", "pre") // the same link
	other.wants("h1", "does not work any more")
	other.looks("used link")
	for _, used := range []string{path, "/session/NONE"} {
		other.open(used)
		other.wants("h1", "does not work any more")
	}

	v.wants("#verdict", "ot ready", "shop")
	v.wants("#alarms li", "1 gap")
	v.looks("overview")
	acknowledgeByClicks(v, c)
	v.open("/")
	v.wants("#alarms li", `route "search" fails for every record`, "<script>window.obeyed = 1")
	v.wants("#routes tbody tr", "search", "outage")
	pauseByClicks(v, c)
	redriveByClicks(v, s)
	withoutScripts(other, s)
	for _, path := range []string{"/page/shards", "/page/shards?settled=1&order=lag", "/page/held", "/page/route?route=search", "/page/letters?route=mail", "/page/workers", "/page/settings", "/page/letters/none", "/page/gaps"} {
		v.open(path)
		v.looks(path)
	}
	refreshes(v, c, s)
}

// acknowledgeByClicks acknowledges the gap.
func acknowledgeByClicks(v *viewer, c *child) {
	v.t.Helper()
	v.click(`nav a[href="/page/gaps"]`, "article")
	v.looks("gaps")
	v.click("article a.button", "#acknowledge")
	v.looks("gap")
	if _, gaps := c.ask("GET", "/gaps"); !strings.Contains(gaps, "trimmed") {
		v.t.Errorf("nobody has acknowledged: %s", gaps)
	}
	v.click("#acknowledge", "#rows")
	v.wants("main", "No gap is open")
	if _, gaps := c.ask("GET", "/gaps"); strings.Contains(gaps, "trimmed") {
		v.t.Errorf("the gap is still there: %s", gaps)
	}
}

// pauseByClicks pauses a route for the hour that the page offers, and resumes it.
func pauseByClicks(v *viewer, c *child) {
	v.t.Helper()
	v.open("/")
	v.click(`#routes a[href="/page/route?route=mail"]`, "#pause")
	v.looks("route")
	_, before := c.ask("GET", "/routes")
	v.click("#pause", "#resume")
	v.wants(`[role="status"]`, "An operator has paused")
	v.looks("paused route")
	if _, paused := c.ask("GET", "/routes"); strings.Contains(before, `"paused":true`) || !strings.Contains(paused, `"paused":true`) {
		v.t.Errorf("before the click %s, after it %s", before, paused)
	}
	v.click("#resume", "main:not(:has(#resume))")
	if _, resumed := c.ask("GET", "/routes"); strings.Contains(resumed, `"paused":true`) {
		v.t.Errorf("it is still paused: %s", resumed)
	}
}

// redriveByClicks redrives the first dead letter.
func redriveByClicks(v *viewer, s *sink) {
	v.t.Helper()
	v.click(`nav a[href="/page/letters"]`, "form tbody")
	v.looks("dead letters")
	v.click("form tbody a", ".diff")
	v.wants("section.panel", "<script>window.obeyed = 1", `\u202e`, "refused")
	v.looks("dead letter")
	letter := seen(v, chromedp.Location())
	v.click(`a[href$="?payload=1"]`, "body")
	v.harmless("the letter as JSON")
	s.answer("/mail", 0)
	seen(v, chromedp.Steps(chromedp.Navigate(letter), chromedp.WaitVisible(chromedp.CSS(".diff"))))
	v.click("#redrive", "#confirm-redrive")
	v.looks("redrive")
	if s.took("/mail", hostile) {
		v.t.Error("it was redriven before it was confirmed")
	}
	v.click("#confirm-redrive", "#report")
	v.wants("#report", "1 done")
	v.looks("redriven")
	if !s.took("/mail", hostile) {
		v.t.Error("the sink has no effect of the redrive")
	}
}

// withoutScripts reads pages and purges the other dead letter without JavaScript.
func withoutScripts(v *viewer, s *sink) {
	v.t.Helper()
	seen(v, chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	}))
	v.open("/")
	v.wants("#alarms li", `route "search" fails for every record`)
	v.wants("#tables", "orders")
	v.click(`#facts a[href="/page/held"]`, `nav a[aria-current][href="/page/held"]`)
	v.wants("#rows", "search")
	v.click(`nav a[href="/page/letters"]`, "form tbody")
	v.click("form tbody input[type=checkbox]", "#purge")
	v.click("#purge", "#confirm-purge")
	v.wants("h1", "Purge 1 dead letter?")
	v.click("#confirm-purge", `main > p > a[href="/page/letters"]`)
	v.wants("h1", "Purged 1 dead letter")
	v.click(`main a[href="/page/letters"]`, "form.filter")
	v.wants("main", "No dead letters.")
	if s.took("/mail", hostile+"2") {
		v.t.Error("the purged letter was redriven")
	}
	for _, problem := range v.Problems() {
		v.t.Error(problem)
	}
}

// refreshes waits until the overview shows by itself that the outage is over, and later
// that the daemon is gone. What somebody opened stays open.
func refreshes(v *viewer, c *child, s *sink) {
	v.t.Helper()
	v.open("/")
	v.wants("#verdict", "ot ready")
	seen(v, chromedp.Evaluate[chromedp.Void](`window.same = true; document.querySelector("#worst summary").click(); document.querySelector("#worst summary").focus()`))
	s.answer("/search", 0)
	localtest.Await(v.t, "the overview has refreshed itself", func() string {
		if text := v.text("#verdict"); strings.Contains(text, "ot ready") {
			return text[:9] // not for how long it is up
		}
		return ""
	})
	if !seen(v, chromedp.Evaluate[bool](`window.same && document.querySelector("#worst").open && document.activeElement.matches("#worst summary")`)) {
		v.t.Error("the page was loaded anew, or what was open or had the focus has lost it")
	}
	v.harmless("overview")
	seen(v, chromedp.Evaluate[chromedp.Void](`document.body.insertAdjacentHTML("beforeend", '<img src="/page/static/none" onerror="window.obeyed = 1">')`))
	localtest.Await(v.t, "the browser refuses a script that got into the page", func() string {
		if seen(v, chromedp.Evaluate[bool](`"obeyed" in window`)) {
			v.t.Fatal("a script that got into the page has run")
		}
		return map[bool]string{true: "no problem"}[len(v.Problems()) == 0]
	})
	c.signal(syscall.SIGTERM)
	c.exit()
	v.wants("#stale", "No answer since")
}
