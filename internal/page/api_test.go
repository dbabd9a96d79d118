package page

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/holders"
)

func TestAPI(t *testing.T) {
	f := newFake(t)
	h := f.handler()
	get := func(path string, into any) {
		t.Helper()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/api/"+path, nil))
		if err := json.Unmarshal(w.Body.Bytes(), into); err != nil || w.Code != 200 || w.Header().Get("Content-Type") != "application/json" || w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("/api/%s: %d, %v: %s", path, w.Code, err, w.Body)
		}
	}
	var st Status
	get("status", &st)
	if st.Application != "shop" || len(st.Routes) != 4 || len(st.Routes[1].Hour) != PointCount || len(st.Tables) != 2 || len(st.Tables[0].Shards) != 3 || st.Tables[0].HoursToLoss != 4 || st.Tables[0].Shards[0].ID != "s-2" {
		t.Errorf("status %+v", st)
	}
	var shards struct{ Shards []Shard }
	get("shards", &shards)
	var ids []string
	for _, s := range shards.Shards {
		ids = append(ids, s.ID)
	}
	if !slices.Equal(ids, []string{"s-1", "s-2", "s-3", "u-1"}) || shards.Shards[2].Parent != "s-1" || shards.Shards[2].Owner != "host/2/B" {
		t.Errorf("shards %+v", shards)
	}
	var held struct{ Held []holders.Item }
	get("held", &held)
	var gaps struct{ Gaps []Gap }
	get("gaps", &gaps)
	var workers struct{ Workers []worker }
	get("workers", &workers)
	var settings Settings
	get("settings", &settings)
	if len(held.Held) != 2 || len(gaps.Gaps) != 1 || gaps.Gaps[0].ID == "" || len(workers.Workers) != 4 || workers.Workers[0].Shards != 2 || workers.Workers[2].State != holders.Living || len(settings.Values) != 1 {
		t.Errorf("%+v\n%+v\n%+v\n%+v", held, gaps, workers, settings)
	}
	f.held, f.gaps, f.workers, f.tables = nil, nil, nil, nil
	for path, want := range map[string]string{"held": `"held": []`, "gaps": `"gaps": []`, "workers": `"workers": []`, "shards": `"shards": []`, "status": `"tables": []`} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/api/"+path, nil))
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("an empty %s: %s", path, w.Body)
		}
	}
}

// The files of the page come from the daemon alone, and say what they are.
func TestStatic(t *testing.T) {
	for name, kind := range map[string]string{"style.css": "text/css", "page.js": "text/javascript", "icon.svg": "image/svg+xml"} {
		w := httptest.NewRecorder()
		Static().ServeHTTP(w, httptest.NewRequest("GET", "/page/static/"+name, nil))
		body := strings.ReplaceAll(w.Body.String(), `xmlns="http://www.w3.org/2000/svg"`, "")
		if w.Code != 200 || !strings.HasPrefix(w.Header().Get("Content-Type"), kind) || w.Header().Get("Content-Security-Policy") == "" || strings.Contains(body, "//www") || strings.Contains(body, "http:") || strings.Contains(body, "https:") {
			t.Errorf("%s: %d %v", name, w.Code, w.Header())
		}
	}
}

// Whoever may not read learns what everybody may know, and how to get in.
func TestLocked(t *testing.T) {
	h := Locked(func(*http.Request) []string { return []string{"route " + hostile} })
	w := ask(h, "GET", "/", nil)
	checkHTML(t, "locked", w)
	if body := w.Body.String(); w.Code != 401 || !strings.Contains(body, "sluice open") || !strings.Contains(body, "&lt;script&gt;") || strings.Contains(body, "/page/letters") {
		t.Errorf("%d %s", w.Code, body)
	}
	if w := ask(Locked(func(*http.Request) []string { return nil }), "GET", "/", nil); !strings.Contains(w.Body.String(), "The daemon is ready") {
		t.Errorf("%s", w.Body)
	}
}

func TestWanted(t *testing.T) {
	for _, tt := range []struct {
		target, accept string
		want           bool
	}{
		{"/", "text/html,application/xhtml+xml,*/*;q=0.8", true},
		{"/", "*/*", false},
		{"/", "application/json", false},
		{"/", "", false},
		{"/?format=json", "text/html", false},
		{"/?format=text", "text/html", false},
	} {
		r := httptest.NewRequest("GET", tt.target, nil)
		r.Header.Set("Accept", tt.accept)
		if Wanted(r) != tt.want {
			t.Errorf("%s of %q: %v", tt.target, tt.accept, !tt.want)
		}
	}
}

// The script asks for the page as a browser does: else it would get the text of /.
func TestScriptWantsThePage(t *testing.T) {
	script, err := static.ReadFile("static/page.js")
	if err != nil {
		t.Fatal(err)
	}
	accepts := regexp.MustCompile(`Accept: "([^"]*)"`).FindAllSubmatch(script, -1)
	if len(accepts) != 1 {
		t.Fatalf("the script has %d Accept headers", len(accepts))
	}
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("Accept", string(accepts[0][1]))
	if !Wanted(r) {
		t.Errorf("Accept %q gets no page", accepts[0][1])
	}
}

// A child follows its parent, and a circle ends.
func TestDescent(t *testing.T) {
	var all []Shard
	for _, pair := range [][2]string{{"d", "b"}, {"b", "a"}, {"c", "a"}, {"a", "trimmed"}, {"e", ""}, {"x", "x"}} {
		all = append(all, Shard{Table: "t", ID: pair[0], Parent: pair[1]})
	}
	all = append(all, Shard{Table: "s", ID: "a"})
	var got []string
	for _, s := range descent(all) {
		got = append(got, fmt.Sprint(s.Table, s.ID, s.Depth))
	}
	if want := []string{"sa0", "ta0", "tb1", "td2", "tc1", "te0", "tx0"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestSparkline(t *testing.T) {
	got := string(sparkline([]Point{{Done: 30}, {Done: 60, Failed: 60}}))
	for _, want := range []string{`points="118,17.5 119,1.0"`, `d="M119,24 V12.0"`, "at most 4/s; failed: 60"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
	if got := string(sparkline([]Point{{Done: 600}, {Failed: 1}})); !strings.Contains(got, `d="M119,24 V19.3"`) {
		t.Errorf("one failure is not to be seen: %s", got)
	}
	if got := string(sparkline(nil)); !strings.Contains(got, "No calls yet") {
		t.Errorf("%s", got)
	}
}

func TestTexts(t *testing.T) {
	for got, want := range map[string]string{
		seconds(0.4): "0 s", seconds(59.9): "59 s", seconds(61): "1 min 1 s", seconds(3 * 3600): "3 h 0 min", seconds(72 * 3600): "3 days", hours(0.5): "30 min", hours(Unknown): "unknown",
		count(1234567): "1\u2009234\u2009567", count(uint64(12)): "12", rate(0.25): "0.25/s", rate(120): "120/s", took(0): "–", took(0.00025): "250 µs", took(0.75): "750 ms", took(1.5): "1.5 s", took(75): "75 s", cut(9, "a\u202eb\u2066cd"): `a\u202eb\u2066c…`,
		sizeOf(12): "12 B", sizeOf(int64(4096)): "4 KiB", sizeOf(3 << 20): "3.0 MiB", cut(4, "aéé"): "aé…", cut(2, "aé"): "a…", cut(4, "aé"): "aé",
		ago(time.Time{}): "never", stamp(time.Time{}): "", plural(1, "gap"): "1 gap", plural(2, "gap"): "2 gaps",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// large is a daemon with 1,000 shards, six generations of them, and as many held items.
func large(t testing.TB) *fake {
	f := newFake(t)
	f.tables, f.held = []Table{{Table: "orders", Open: 1000, Reading: 1000}}, nil
	for gen := range 6 {
		for i := range 1000 {
			s := Shard{Table: "orders", ID: fmt.Sprintf("shardId-%020d-%08x", gen, i), State: Settled}
			if gen > 0 {
				s.Parent = fmt.Sprintf("shardId-%020d-%08x", gen-1, i)
			}
			if gen == 5 {
				s.State, s.Reading, s.Owner, s.LagSeconds, s.HoursToLoss, s.LastPoll = Open, true, "host/1/A", float64(i), 24, time.Now()
			}
			f.tables[0].Shards = append(f.tables[0].Shards, s)
		}
	}
	for range 1000 {
		f.held = append(f.held, holders.Item{Source: "stream", Table: "orders", Key: "00ff", Route: "search", Error: strings.Repeat("e", 1000)})
	}
	return f
}

// With 1,000 shards the pages stay small, and lead to all.
func TestLargeDaemon(t *testing.T) {
	f := large(t)
	h := f.handler()
	for path, want := range map[string]string{
		"/":                               "(980 more)",
		"/page/shards":                    "1–100 of 1\u2009000",
		"/page/shards?settled=1&from=500": "501–600 of 6\u2009000",
		"/page/shards?from=99999":         "901–1\u2009000 of 1\u2009000",
		"/page/held":                      "1–100 of 1\u2009000",
	} {
		w := ask(h, "GET", path, nil)
		checkHTML(t, path, w)
		if n := w.Body.Len(); n > 100_000 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d bytes, %q there: %v", path, n, want, strings.Contains(w.Body.String(), want))
		}
	}
}

func BenchmarkOverview(b *testing.B) { benchmark(b, "/") }
func BenchmarkShards(b *testing.B)   { benchmark(b, "/page/shards") }

func benchmark(b *testing.B, path string) {
	h := large(b).handler()
	b.ReportAllocs()
	for b.Loop() {
		if w := ask(h, "GET", path, nil); w.Code != 200 {
			b.Fatal(w.Code)
		}
	}
}
