package page

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/holders"
	"github.com/sluicehq/sluice/internal/letters"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/state"
)

// hostile is text that a page must show and never obey.
const hostile = `"><script>alert(1)</script><img src=x onerror=alert(2)>'` + "\x1b[31m"

// fake is a daemon with dead letters in memory.
type fake struct {
	status   Status
	tables   []Table
	held     []holders.Item
	unlisted []string
	gaps     []Gap
	workers  []holders.Worker
	box      *letters.Box

	acknowledged []string
	throttled    []string // actions with their forms
	warning      string
	changes      int // redrives and purges
	seenHow      deadletter.How
}

func (f *fake) Status() Status                                    { return f.status }
func (f *fake) Tables() []Table                                   { return slices.Clone(f.tables) }
func (f *fake) Held(bool) HeldItems                               { return HeldItems{slices.Clone(f.held), f.unlisted} }
func (f *fake) Gaps() []Gap                                       { return f.gaps }
func (f *fake) Workers(context.Context) ([]holders.Worker, error) { return f.workers, nil }
func (f *fake) Settings() Settings {
	return Settings{[]Setting{{"tables", hostile}}}
}
func (f *fake) Explain(context.Context, *sluice.Record) []Explained {
	return []Explained{{Route: hostile, Takes: true, Effects: []string{hostile}}, {Route: "other", Why: "no"}}
}

func (f *fake) Acknowledge(_ context.Context, ids []string) error {
	f.acknowledged = append(f.acknowledged, ids...)
	return nil
}

func (f *fake) Throttle(_ context.Context, action string, form url.Values) (warning string, err error) {
	if form.Get("for") == "13h" {
		return "", &Error{http.StatusBadRequest, errors.New("12h at most")}
	}
	f.throttled = append(f.throttled, action+" "+form.Encode())
	return f.warning, nil
}

func (f *fake) List(ctx context.Context, filter deadletter.Filter, after string, limit int) (l LetterList, err error) {
	err = f.box.All(ctx, filter, func(e deadletter.Entry) error {
		switch {
		case e.ID <= after:
		case len(l.DeadLetters) == limit:
			l.Next = l.DeadLetters[limit-1].ID
		default:
			l.DeadLetters = append(l.DeadLetters, letters.OutlineOf(&e, false))
		}
		return nil
	})
	return l, err
}

func (f *fake) Show(ctx context.Context, id string) (e deadletter.Entry, err error) {
	if id, err = f.box.Find(ctx, id); err != nil {
		return e, err
	}
	return f.box.Get(ctx, id)
}

func (f *fake) Redrive(ctx context.Context, ids []string, filter deadletter.Filter, how deadletter.How) (r deadletter.Report, err error) {
	if !how.DryRun {
		f.changes++
		f.seenHow = how
	}
	if len(ids) == 0 {
		err = f.box.All(ctx, filter, func(e deadletter.Entry) error { ids = append(ids, e.ID); return nil })
	}
	for _, id := range ids {
		o := deadletter.Outcome{ID: id, Result: deadletter.WouldRun, Routes: []string{"send"}}
		if r.WouldRun++; !how.DryRun {
			o.Result, o.Error = deadletter.Failed, hostile
			r.Failed++
		}
		how.Told(o)
	}
	return r, err
}

func (f *fake) Purge(ctx context.Context, ids []string, filter deadletter.Filter, dryRun bool) (int, error) {
	if !dryRun {
		f.changes++
		for _, id := range ids {
			if err := f.box.Delete(ctx, id); err != nil {
				return 0, err
			}
		}
	}
	if len(ids) == 0 {
		return f.box.Purge(ctx, filter, dryRun)
	}
	return len(ids), nil
}

func newFake(t testing.TB) *fake {
	t.Helper()
	now := time.Now()
	f := &fake{box: letters.NewBox(state.NewMemory(), "shop")}
	hour := make([]Point, PointCount)
	for i := range hour {
		hour[i] = Point{Done: uint32(600 + i*3%97), P50: .004, P99: .09}
		if i > 100 {
			hour[i].Failed = uint32(i)
		}
	}
	f.status = Status{
		Application: "shop", Version: "v1.2.3", Config: "1a2b3c4d", Worker: "host/1/A", Started: now.Add(-90 * time.Minute),
		Reasons: []string{`route "search" fails for every record since 03:12: ` + hostile, "table orders shard s-2: " + hostile, "state store: full", "records are lost: first repair"},
		Routes: []Route{
			{Route: "send", State: "works", Last: hour[50], Hour: hour[:100]},
			{Route: "search", State: "outage", Since: now.Add(-time.Minute), Failing: 12, Waiting: 1234, Error: hostile, Last: hour[119], Hour: hour, Others: []RouteAt{
				{"host/4/D", holders.RouteReport{Route: "search", State: "works", PerSecond: 1000}},
				{"host/3/C", holders.RouteReport{Route: "search", State: "partial outage", PerSecond: 2, Failing: 3, Error: hostile}},
				{"e", holders.RouteReport{State: "partial outage"}}, {"f", holders.RouteReport{State: "partial outage"}}, {"g", holders.RouteReport{State: "partial outage"}},
				{"h", holders.RouteReport{State: "partial outage"}}, {"i", holders.RouteReport{State: "partial outage"}}, {"j", holders.RouteReport{State: "works", Failing: 1}},
			}},
			{Route: "notify", State: "overloaded", Since: now.Add(-time.Minute), Limit: 7, Error: "429"},
			{Route: "a b&c", State: "works", Throttle: &Throttle{Paused: true, Text: "paused for 1h0m0s"}},
		},
		Queues: []Queue{{"jobs", 3, 61}}, Backfills: []Backfill{{"orders", 600, 500, 2000, false}, {"old", 7, 7, 7, true}}, Cascades: []Cascade{{"lines", "orders/" + hostile, 12000, 133, 90}}, Held: 2, Gaps: 1, Unknown: "what other workers do is not known: timeout",
		DeadLetters: []deadletter.Count{{Route: "send", Table: "test", Kind: "record", N: 3}}, CountedAt: now,
	}
	f.tables = []Table{
		{Table: "orders", LagSeconds: 72000, HoursToLoss: 4, Unsettled: 1234, Open: 2, Reading: 1, Settled: 1, Shards: []Shard{
			{Table: "orders", ID: "s-3", Parent: "s-1", State: Open, Owner: "host/2/B"},
			{Table: "orders", ID: "s-1", State: Settled},
			{Table: "orders", ID: "s-2", Parent: "s-1", State: Closed, Reading: true, Owner: "host/1/A", LagSeconds: 72000, HoursToLoss: 4, Unsettled: 1234, LastPoll: now, Error: hostile},
		}},
		{Table: "users", HoursToLoss: 24, Open: 1, Reading: 1, Shards: []Shard{{Table: "users", ID: "u-1", State: Open, Reading: true, Owner: "host/1/A", HoursToLoss: 24, LastPoll: now}}},
	}
	f.held = []holders.Item{{Source: "stream", Table: "orders", Shard: "s-2", Key: "00ff", Route: "search", Attempts: 4, AgeSeconds: 90, Bytes: 4096, Error: hostile}, {Worker: "host/3/C", Source: "queue", Table: "jobs", Stuck: true, Route: "send", AgeSeconds: 3}}
	f.unlisted = []string{"worker host/3/C holds 42 more"}
	f.gaps = []Gap{{ID: "0123456789abcdef", Table: "orders", Found: now, Lost: "table orders shard s-2: " + hostile, Repair: []string{"sluice audit --repair"}}}
	f.workers = []holders.Worker{{Name: "host/1/A", State: holders.Living, Config: "1a2b3c4d", Shards: make([]holders.Held, 2)}, {Name: "host/2/B", State: holders.Silent}, {Name: "host/3/C", State: holders.Living, Config: "ffff", Report: &holders.Report{Held: 4321, Tables: []holders.TableReport{{Table: "orders", LagSeconds: 3600}}}}, {Name: "old", State: holders.Fenced}}
	return f
}

// park parks a record of an item, and returns its id.
func (f *fake) park(t testing.TB, n int, old, after string) string {
	t.Helper()
	rec := recordtest.New(recordtest.Spec{Event: sluice.Modify, Keys: fmt.Sprintf(`{"pk":{"S":"o-%d"}}`, n), Old: old, New: after, Sequence: recordtest.Sequence(n), Shard: "shard"})
	failure := sluice.Failure{Route: "send", Attempts: 8, First: errors.New("first"), Last: errors.New(hostile), FirstAt: time.Now(), LastAt: time.Now()}
	if err := f.box.Park(t.Context(), &rec, failure); err != nil {
		t.Fatal(err)
	}
	return f.box.ID(&rec, "send")
}

func (f *fake) handler() http.Handler { return New(f, "shop", true) }

// ask makes a request as a browser does.
func ask(h http.Handler, method, target string, form url.Values, change ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://127.0.0.1:9464"+target, strings.NewReader(form.Encode()))
	r.Header.Set("Accept", "text/html,application/xhtml+xml")
	if method == "POST" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", "http://127.0.0.1:9464")
	}
	for _, c := range change {
		c(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// checkHTML checks a page as far as a parser can: its text is escaped, its elements are
// closed, its ids are unique, its fields have names for screen readers, and nothing of it
// comes from elsewhere.
func checkHTML(t *testing.T, what string, w *httptest.ResponseRecorder) {
	t.Helper()
	h := w.Header()
	csp := h.Get("Content-Security-Policy")
	if !strings.HasPrefix(csp, "default-src 'none'; ") || strings.Contains(csp, "unsafe") || strings.Contains(csp, "http") || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Cache-Control") != "no-store" {
		t.Errorf("%s: headers %v", what, h)
	}
	body := w.Body.String()
	if strings.Contains(body, "<script>") || strings.Contains(body, "<img src=x") {
		t.Errorf("%s: hostile text is markup", what)
	}
	void := []string{"meta", "link", "img", "input", "br"}
	var open []string
	ids := make(map[string]bool)
	z := html.NewTokenizer(strings.NewReader(body))
	labelled := 0
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			break
		}
		token := z.Token()
		attr := make(map[string]string)
		for _, a := range token.Attr {
			attr[a.Key] = a.Val
			if strings.HasPrefix(a.Key, "on") || a.Key == "style" {
				t.Errorf("%s: <%s %s>", what, token.Data, a.Key)
			}
			if (a.Key == "href" || a.Key == "src" || a.Key == "action") && !strings.HasPrefix(a.Val, "/") && !strings.HasPrefix(a.Val, "#") {
				t.Errorf("%s: <%s %s=%q>", what, token.Data, a.Key, a.Val)
			}
		}
		switch kind {
		case html.StartTagToken:
			if id, ok := attr["id"]; ok {
				if ids[id] {
					t.Errorf("%s: two elements have the id %q", what, id)
				}
				ids[id] = true
			}
			if token.Data == "label" {
				labelled++
			}
			if (token.Data == "input" && attr["type"] != "hidden" || token.Data == "select" || token.Data == "meter" || token.Data == "progress") && labelled == 0 && attr["aria-label"] == "" {
				t.Errorf("%s: <%s %v> has no label", what, token.Data, attr)
			}
			if token.Data == "th" && attr["scope"] == "" {
				t.Errorf("%s: a <th> without scope", what)
			}
			if token.Data == "script" && attr["src"] != "/page/static/page.js" {
				t.Errorf("%s: script %v", what, attr)
			}
			if !slices.Contains(void, token.Data) {
				open = append(open, token.Data)
			}
		case html.EndTagToken:
			if token.Data == "label" {
				labelled--
			}
			if n := len(open); n == 0 || open[n-1] != token.Data {
				t.Fatalf("%s: </%s> ends %v", what, token.Data, open)
			}
			open = open[:len(open)-1]
		}
	}
	if len(open) > 1 || len(open) == 1 && open[0] != "html" {
		t.Errorf("%s: %v stay open", what, open)
	}
}

// Every page is sound, escapes what it shows, and its GET changes nothing.
func TestPages(t *testing.T) {
	f := newFake(t)
	id := f.park(t, 1, `{"pk":{"S":"o-1"},"note":{"S":"<script>alert(3)</script>"},"gone":{"N":"1"},"same":{"S":"x"}}`, `{"pk":{"S":"o-1"},"note":{"S":"new"},"fresh":{"BOOL":true},"same":{"S":"x"}}`)
	h := f.handler()
	for path, wants := range map[string][]string{
		"/":                                    {"not ready", "In 4 h 0 min the stream deletes", "1 gap: records were lost", "outage", "<svg", "12", "overloaded", "429", "route a b&amp;c is paused for 1h0m0s", "/page/route?route=a%20b%26c", "orders", "s-2", "25 %", "finished", "12\u2009000", "1 min 30 s", "00ff", "handler does not return", "&lt;script&gt;", "route &#34;search&#34;: partial outage at 6 other workers, such as host/3/C", "And at", "2 more workers", "not known: timeout", "At worker host/3/C:", "3 items failing", "worker host/3/C</small>"},
		"/page/shards":                         {"s-2", "s-3", "child of s-1", "host/2/B", "1 shard settled"},
		"/page/shards?settled=1&order=lag":     {"s-1", "settled"},
		"/page/shards?table=users":             {"u-1", "selected>users"},
		"/page/held":                           {"00ff", "&lt;script&gt;", "host/3/C holds 42 more"},
		"/page/held?route=send":                {"handler does not return"},
		"/page/gaps":                           {"Acknowledge…", "&lt;script&gt;"},
		"/page/gaps/0123456789abcdef":          {"sluice audit --repair", `method="post"`},
		"/page/route?route=a+b%26c":            {"An operator has paused for 1h0m0s", "Resume now", `value="1h"`},
		"/page/workers":                        {"host/1/A", "4\u2009321", "1 h 0 min", "silent", "<strong>ffff</strong>", "different configurations", "1 worker"},
		"/page/settings":                       {"v1.2.3", "&lt;script&gt;"},
		"/page/letters":                        {letters.ShortID(id), `value="` + id + `"`, "&lt;script&gt;"},
		"/page/letters?key=pk%3Do-1":           {letters.ShortID(id), "Clear"},
		"/page/letters?key=pk%3Do-2&route=":    {"No dead letter matches"},
		"/page/letters/" + letters.ShortID(id): {"removed", "added", "changed", "true", "&lt;script&gt;alert(3)", "/deadletters/" + id, "other</strong>: does not take it"},
	} {
		w := ask(h, "GET", path, nil)
		if w.Code != 200 {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
		checkHTML(t, path, w)
		for _, want := range wants {
			if !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s: no %q", path, want)
			}
		}
		if strings.Contains(path, "table=users") && strings.Contains(w.Body.String(), "s-2") {
			t.Errorf("%s: shards of another table", path)
		}
	}
	for path, code := range map[string]int{
		"/page/letters/zzzzzzzz": 404, "/page/letters?key=pk": 400, "/page/route?route=none": 404, "/page/gaps/none": 404, "/page/letters/redrive": 404, "/page/nothing": 404, "/page/letters/purge": 404,
	} {
		if w := ask(h, "GET", path, nil); w.Code != code {
			t.Errorf("%s: %d, want %d", path, w.Code, code)
		} else if path != "/page/nothing" {
			checkHTML(t, path, w)
		}
	}
	if f.changes > 0 || len(f.acknowledged) > 0 {
		t.Errorf("a GET changes something: %d, %v", f.changes, f.acknowledged)
	}
}

// The overview says once that there are gaps, however many reasons they are.
func TestGapIsOneAlarm(t *testing.T) {
	f := newFake(t)
	w := ask(f.handler(), "GET", "/", nil).Body.String()
	_, alarms, _ := strings.Cut(w, `<ul class="alarms bad">`)
	alarms, _, _ = strings.Cut(alarms, "</ul>")
	if strings.Count(alarms, "<li>") != 5 || strings.Contains(alarms, "shard s-2") || !strings.Contains(alarms, "state store: full") || strings.Contains(w, "first repair") {
		t.Errorf("want the time to loss, the gap, the two outages and the store in\n%s", alarms)
	}
	if len(f.status.Reasons) != 4 {
		t.Errorf("the status has lost reasons: %q", f.status.Reasons)
	}
}

// A change needs a form of the page itself.
func TestChanges(t *testing.T) {
	f := newFake(t)
	one, two := f.park(t, 1, "", `{"pk":{"S":"o-1"}}`), f.park(t, 2, "", `{"pk":{"S":"o-2"}}`)
	h := f.handler()
	forms := map[string]url.Values{
		"/page/letters/redrive":       {"id": {one}},
		"/page/letters/purge":         {"id": {one}},
		"/page/letters/confirm":       {"id": {one}, "do": {"purge"}},
		"/page/gaps/0123456789abcdef": {},
		"/page/route/pause":           {"route": {hostile}, "for": {"1h"}},
	}
	for path, form := range forms {
		for what, change := range map[string]func(*http.Request){
			"no origin":      func(r *http.Request) { r.Header.Del("Origin") },
			"another origin": func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:9465") },
			"a null origin":  func(r *http.Request) { r.Header.Set("Origin", "null") },
			"another site": func(r *http.Request) {
				r.Header.Set("Origin", "http://example.com")
				r.Header.Set("Sec-Fetch-Site", "cross-site")
			},
		} {
			if w := ask(h, "POST", path, form, change); w.Code != 403 {
				t.Errorf("%s of %s: %d", path, what, w.Code)
			}
		}
	}
	for what, form := range map[string]url.Values{
		"nothing":        {"do": {"purge"}},
		"neither":        {"id": {one}},
		"a wrong filter": {"all": {"1"}, "do": {"purge"}, "key": {"pk"}},
	} {
		if w := ask(h, "POST", "/page/letters/confirm", form); w.Code != 400 {
			t.Errorf("a form with %s: %d", what, w.Code)
		}
	}
	for _, do := range []string{"redrive", "purge"} {
		if w := ask(h, "POST", "/page/letters/"+do, url.Values{}); w.Code != 400 {
			t.Errorf("%s of nothing: %d", do, w.Code)
		}
	}
	confirmed := func(form url.Values, wants ...string) {
		t.Helper()
		w := ask(h, "POST", "/page/letters/confirm", form)
		checkHTML(t, "confirm", w)
		for _, want := range wants {
			if w.Code != 200 || !strings.Contains(w.Body.String(), want) {
				t.Errorf("confirming %v: %d, no %q", form, w.Code, want)
			}
		}
	}
	confirmed(url.Values{"id": {one, two}, "do": {"purge"}}, "Purge 2 dead letters?", `value="`+two+`"`)
	confirmed(url.Values{"id": {one}, "do": {"redrive"}}, "Redrive 1 dead letter?", "would run")
	confirmed(url.Values{"all": {"1"}, "id": {one}, "key": {"pk=o-2"}, "do": {"redrive"}}, "every dead letter with key=pk%3Do-2", "Redrive 1<", `name="kind" value="record"`)
	confirmed(url.Values{"all": {"1"}, "do": {"purge"}}, "Purge every dead letter?", "Purge 2<")
	if f.changes > 0 || len(f.acknowledged) > 0 {
		t.Fatalf("something changed without a confirmed form: %d, %v", f.changes, f.acknowledged)
	}

	w := ask(h, "POST", "/page/letters/redrive", url.Values{"id": {one}, "earlier": {"1"}})
	checkHTML(t, "redrive", w)
	if body := w.Body.String(); w.Code != 200 || f.changes != 1 || !f.seenHow.Earlier || !strings.Contains(body, letters.ShortID(one)) || !strings.Contains(body, "<strong>1</strong> failed") {
		t.Errorf("a redrive: %d, %d changes: %s", w.Code, f.changes, body)
	}
	until := time.Now().Format(time.RFC3339Nano)
	later := f.park(t, 9, "", `{"pk":{"S":"o-2"}}`) // nobody has confirmed it
	if w := ask(h, "POST", "/page/letters/purge", url.Values{"all": {"1"}, "key": {"pk=o-2"}}); w.Code != 400 {
		t.Errorf("a purge of all without a confirmation: %d", w.Code)
	}
	if w := ask(h, "POST", "/page/letters/confirm", url.Values{"all": {"1"}, "kind": {"gap"}, "do": {"purge"}}); w.Code != 400 {
		t.Errorf("a purge of all gaps: %d", w.Code)
	}
	w = ask(h, "POST", "/page/letters/purge", url.Values{"all": {"1"}, "key": {"pk=o-2"}, "until": {until}}, func(r *http.Request) {
		r.Header.Del("Origin")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	})
	if _, err := f.box.Get(t.Context(), two); w.Code != 200 || !errors.Is(err, deadletter.ErrNotFound) || !strings.Contains(w.Body.String(), "Purged 1 dead letter") {
		t.Errorf("a purge by filter: %d, %v", w.Code, err)
	}
	for _, other := range []string{one, later} {
		if _, err := f.box.Get(t.Context(), other); err != nil {
			t.Errorf("a purge took another letter: %v", err)
		}
	}
	if len(f.throttled) > 0 {
		t.Errorf("a route changed without a form of the page: %v", f.throttled)
	}
	form := url.Values{"route": {hostile}, "for": {"2h"}, "rate": {"5"}, "more": {"x"}}
	back := "/page/route?" + url.Values{"route": {hostile}}.Encode()
	for action, want := range map[string]url.Values{
		"pause": {"route": {hostile}, "for": {"2h"}}, "slow": {"route": {hostile}, "for": {"2h"}, "rate": {"5"}}, "resume": {"route": {hostile}, "for": {"2h"}},
	} {
		f.throttled, f.warning = nil, ""
		w := ask(h, "POST", "/page/route/"+action, form)
		if to := w.Header().Get("Location"); w.Code != 303 || to != back || !slices.Equal(f.throttled, []string{action + " " + want.Encode()}) {
			t.Errorf("%s: %d to %s, %v", action, w.Code, to, f.throttled)
		}
		f.warning = hostile
		if w := ask(h, "POST", "/page/route/"+action, form); w.Code != 200 || !strings.Contains(w.Body.String(), "Stored") {
			t.Errorf("%s with a warning: %d %s", action, w.Code, w.Body)
		} else {
			checkHTML(t, action, w)
		}
	}
	w = ask(h, "POST", "/page/route/pause", url.Values{"route": {"send"}, "for": {"13h"}})
	if w.Code != 400 || !strings.Contains(w.Body.String(), "12h at most") {
		t.Errorf("a pause that is too long: %d %s", w.Code, w.Body)
	}
	w = ask(h, "POST", "/page/gaps/0123456789abcdef", nil)
	if w.Code != 303 || !slices.Equal(f.acknowledged, []string{"0123456789abcdef"}) {
		t.Errorf("a gap: %d, %v", w.Code, f.acknowledged)
	}
}

// A record of 400 KB is cut, with a link to the whole, and so are many attributes.
func TestLargeLetter(t *testing.T) {
	f := newFake(t)
	var many strings.Builder
	for i := range 500 {
		fmt.Fprintf(&many, `,"a%03d":{"N":"%d"}`, i, i)
	}
	id := f.park(t, 1, "", `{"pk":{"S":"o-1"},"big":{"S":"`+strings.Repeat("é", 200_000)+`"}`+many.String()+`}`)
	w := ask(f.handler(), "GET", "/page/letters/"+id, nil)
	checkHTML(t, "a large letter", w)
	if body := w.Body.String(); len(body) > 100_000 || !strings.Contains(body, `href="/deadletters/`+id+`?payload=1"`) || !strings.Contains(body, "this page cuts it") || !strings.Contains(body, "302 attributes more") {
		t.Errorf("%d bytes", len(body))
	}
}
