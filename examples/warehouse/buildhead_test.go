package warehouse

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/examples/internal/kit"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/streamtest"
)

// built is a build of package p in dev; day is that of its create_date, 0 is none.
func built(version, locale string, day int) sluice.Item {
	k := "p!dev!" + version
	it := item.Of(item.String("key", k), item.String("locale", locale), item.String("build_id", k+"!"+locale), item.String("name", "p"),
		item.String("env", "dev"), item.String("version", version), item.String("cdn_url", "https://cdn.example.com/"+version))
	if day > 0 {
		it = it.With(item.String("create_date", fmt.Sprintf("2026-01-%02dT00:00:00Z", day)))
	}
	return it
}

func buildKey(it sluice.Item) sluice.Item { return it.Only("key", "locale") }

// head is the head of p in dev and a locale: version, dates, and how many builds
// it remembers.
func (m *memory) head(locale string) string {
	m.t.Helper()
	heads, err := m.Heads(m.t.Context(), "p", "dev")
	if err != nil {
		m.t.Fatal(err)
	}
	i := slices.IndexFunc(heads, func(h BuildHead) bool { return h.Locale == locale })
	if i < 0 {
		return "none"
	}
	h := heads[i]
	if h.ID != "p!dev!"+h.Version+"!"+locale || h.CDN != "https://cdn.example.com/"+h.Version || h.Name != "p" || h.Env != "dev" {
		m.t.Errorf("a head with attributes of another: %+v", h)
	}
	return h.Version + " " + strings.TrimSuffix(h.Created, "T00:00:00Z") + " " + strings.TrimSuffix(h.Updated, "T00:00:00Z")
}

// want is the head by brute force.
func (m *memory) want(locale string) string {
	var all []buildEntry
	for _, it := range m.Items(m.table("build")) {
		if e, err := entryOf(it); err == nil && kit.Text(it, "locale") == locale {
			all = append(all, e)
		}
	}
	if len(all) == 0 {
		return "none"
	}
	slices.SortFunc(all, buildEntry.compare)
	all = all[max(0, len(all)-historyLength):]
	var dates span
	for _, e := range all {
		d, _ := parseDate(e.Created)
		dates = dates.with(d)
	}
	return all[len(all)-1].Version + " " + strings.TrimSuffix(dates.from.text, "T00:00:00Z") + " " + strings.TrimSuffix(dates.to.text, "T00:00:00Z")
}

// Builds come, change and go; their records are handled in an order that is drawn,
// some twice: the head is the largest build that is there, and its dates are those
// of the 16 largest.
func TestBuildHeadsInAnyOrder(t *testing.T) { buildHeads(t, 5) }

func buildHeads(t *testing.T, seeds uint64) {
	for seed := range seeds {
		m := newMemory(t)
		m.drawn(seed)
		for range 80 {
			version, locale := fmt.Sprintf("1.%d.0", m.Rand.IntN(24)), []string{"de-DE", "en-US"}[m.Rand.IntN(2)]
			it := built(version, locale, m.Rand.IntN(10))
			if m.Rand.IntN(3) == 0 {
				m.remove("build", buildKey(it))
			} else {
				m.put("build", it)
			}
			if m.Rand.IntN(4) == 0 {
				m.run()
			}
		}
		m.run()
		for _, locale := range []string{"de-DE", "en-US"} {
			if got, want := m.head(locale), m.want(locale); got != want {
				t.Fatalf("seed %d: head of %s is %s, want %s", seed, locale, got, want)
			}
		}
	}
}

// The largest of three builds is deleted. All orders of the records give the same
// items.
func TestDeletedHeadInAnyOrder(t *testing.T) {
	a, b, c := built("1.0.0", "en-US", 1), built("1.1.0", "en-US", 2), built("1.2.0", "en-US", 3)
	key := streamtest.WithKeys("key", "locale")
	for order := range permutations(3) {
		m := newMemory(t)
		m.put("build", a, b, c)
		m.remove("build", buildKey(c))
		m.Records()
		table := m.table("build")
		for _, i := range order {
			m.Replay([]sluice.Record{streamtest.Insert(table, a, key), streamtest.Insert(table, b, key), streamtest.Remove(table, c, key)}[i])
			m.run()
		}
		m.Replay(streamtest.Insert(table, c, key)) // out of the dead letters
		m.run()
		if got := m.head("en-US"); got != "1.1.0 2026-01-01 2026-01-02" {
			t.Errorf("in the order %v: %s", order, got)
		}
	}
}

// The index still shows deleted builds, and not yet new ones.
func TestIndexThatLags(t *testing.T) {
	m := newMemory(t)
	m.lags = true
	for day := 1; day <= 20; day++ {
		m.put("build", built(fmt.Sprintf("1.%d.0", day), "en-US", day))
		m.run()
		if day == 4 {
			m.index = m.Items(m.table("build")) // it goes no further for now
		}
	}
	for day := 20; day > 5; day-- {
		m.remove("build", buildKey(built(fmt.Sprintf("1.%d.0", day), "en-US", day)))
		m.run()
		if got, want := m.head("en-US"), fmt.Sprintf("1.%d.0 ", day-1); !strings.HasPrefix(got, want) {
			t.Fatalf("after %d: %s", day, got)
		}
	}
	// Its candidates are gone but the second.
	for _, day := range []int{1, 3, 4, 5} {
		m.remove("build", buildKey(built(fmt.Sprintf("1.%d.0", day), "en-US", day)))
	}
	m.run()
	if got := m.head("en-US"); got != "1.2.0 2026-01-02 2026-01-02" {
		t.Error(got)
	}
	m.remove("build", buildKey(built("1.2.0", "en-US", 2)))
	m.run()
	if got := m.state("build_head"); got != "" {
		t.Error("without a build there is", got)
	}
}

// Something happens between the look at the builds and the write of the head.
func TestDeletedHeadRacesAnotherChange(t *testing.T) {
	small, candidate, head, other := built("1.0.0", "en-US", 1), built("1.1.0", "en-US", 2), built("1.2.0", "en-US", 4), built("1.1.5", "en-US", 3)
	for _, tt := range []struct {
		name   string
		change func(m *memory)
		want   string
	}{
		{"a build between the two is inserted, and its record handled", func(m *memory) {
			m.put("build", other)
			m.run()
		}, "1.1.5 2026-01-01 2026-01-03"},
		{"a build is inserted, its record comes later", func(m *memory) { m.put("build", other) }, "1.1.5 2026-01-01 2026-01-03"},
		{"the candidate is deleted, its record comes later", func(m *memory) { m.remove("build", buildKey(candidate)) }, "1.0.0 2026-01-01 2026-01-01"},
		{"the candidate is deleted, and its record handled", func(m *memory) {
			m.remove("build", buildKey(candidate))
			m.run()
		}, "1.0.0 2026-01-01 2026-01-01"},
		{"the head is made again, and its record handled", func(m *memory) {
			m.put("build", head)
			m.run()
		}, "1.2.0 2026-01-01 2026-01-04"},
		{"the head is made again, its record comes later", func(m *memory) { m.put("build", head) }, "1.2.0 2026-01-01 2026-01-04"},
		{"all are deleted", func(m *memory) {
			m.remove("build", buildKey(candidate))
			m.remove("build", buildKey(small))
			m.run()
		}, "none"},
	} {
		m := newMemory(t)
		m.lags = true // and shows all for ever
		m.index = []sluice.Item{small, candidate, head}
		m.put("build", small, candidate, head)
		m.run()
		m.remove("build", buildKey(head))
		m.before = func() { tt.change(m) }
		m.run()
		if got := m.head("en-US"); got != tt.want || m.before != nil {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// A build is in another state while a head is looked at, and back in its first one
// when the head is written. The records of both changes find the head right and
// write nothing.
func TestHeadOfABuildThatChangesAndChangesBack(t *testing.T) {
	small, middle, large := built("1.0.0", "en-US", 1), built("1.1.0", "en-US", 2), built("1.2.0", "en-US", 3)
	for name, tt := range map[string]struct{ handled, was, between sluice.Item }{
		"the head has another attribute":        {small, large, large.With(item.String("previous_build_id", "stale"))},
		"the head lacks an attribute":           {small, large, large.Without("cdn_url")},
		"the head is the smallest":              {small, large, built("1.2.0", "en-US", 0)},
		"the head can be none":                  {small, large, large.With(item.String("create_date", "soon"))},
		"the head is deleted":                   {small, large, sluice.Item{}},
		"a build below the head is the largest": {middle, middle, built("1.1.0", "en-US", 9)},
		"a build below the head is smaller":     {middle, middle, built("1.1.0", "en-US", 0)},
	} {
		m := newMemory(t)
		m.put("build", small, middle, large)
		m.run()
		want := m.state("build_head")
		if tt.between.Exists() {
			m.put("build", tt.between)
		} else {
			m.remove("build", buildKey(tt.was))
		}
		m.before = func() {
			m.put("build", tt.was)
			m.run() // both records
		}
		rec := streamtest.Insert(m.table("build"), tt.handled, streamtest.WithKeys("key", "locale")) // once more
		if err := m.onBuild(t.Context(), &rec); err != nil || m.before != nil {
			t.Fatalf("%s: %v, no transaction: %t", name, err, m.before != nil)
		}
		if got := m.state("build_head"); got != want {
			t.Errorf("%s: the head is\n%swant\n%s", name, got, want)
		}
	}
}

// A daemon that starts at LATEST on a table with builds has no record of them.
func TestHeadOfATableWithBuilds(t *testing.T) {
	first, large := built("1.0.0", "en-US", 1), built("2.0.0", "en-US", 5)
	for name, tt := range map[string]struct {
		row    sluice.Item // of the head
		change func(m *memory)
		want   string
	}{
		"a build is changed": {change: func(m *memory) {
			m.put("build", first.With(item.String("previous_build_id", "x")))
		}, want: "2.0.0 2026-01-01 2026-01-05"},
		"a build is inserted": {change: func(m *memory) {
			m.put("build", built("1.1.0", "en-US", 2))
		}, want: "2.0.0 2026-01-01 2026-01-05"},
		"the largest build is deleted": {change: func(m *memory) {
			m.remove("build", buildKey(large))
		}, want: "1.0.0 2026-01-01 2026-01-01"},
		"the head has no history": {
			row:    item.Of(item.String("key", "p!dev"), item.String("locale", "en-US"), item.String("version", "2.0.0")),
			change: func(m *memory) { m.remove("build", buildKey(large)) }, want: "1.0.0 2026-01-01 2026-01-01",
		},
		"the index lags": {change: func(m *memory) {
			m.index, m.lags = m.Items(m.table("build")), true
			m.remove("build", buildKey(large))
			m.Records() // its record comes later
			m.put("build", built("1.1.0", "en-US", 2))
		}, want: "1.1.0 2026-01-01 2026-01-02"},
	} {
		m := newMemory(t)
		m.put("build", first, large)
		if tt.row.Exists() {
			m.put("build_head", tt.row)
		}
		m.Records() // before the start
		tt.change(m)
		m.run()
		if got := m.head("en-US"); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

// A build that is deleted while its record makes it the head is none.
func TestInsertedHeadRacesItsDeletion(t *testing.T) {
	m := newMemory(t)
	m.put("build", built("1.0.0", "en-US", 1))
	m.run()
	it := built("1.1.0", "en-US", 2)
	m.put("build", it)
	m.before = func() {
		m.remove("build", buildKey(it))
		m.run()
	}
	m.run()
	if got := m.head("en-US"); got != "1.0.0 2026-01-01 2026-01-01" {
		t.Error(got)
	}
}

func TestHeadHasTheAttributesOfItsBuild(t *testing.T) {
	m := newMemory(t)
	it, err := item.Parse([]byte(`{"key":{"S":"p!dev!1.0.0"},"locale":{"S":"en-US"},"build_id":{"S":"p!dev!1.0.0!en-US"},"previous_build_id":{"S":"x"},"name":{"S":"p"},"env":{"S":"dev"},"version":{"S":"1.0.0"},
		"rollback_build_ids":{"M":{"0":{"S":"y"}}},"create_date":{"S":"2026-01-01T00:00:00Z"},"cdn_url":{"S":"https://c"},"fingerprints":{"SS":["f"]},"artifacts":{"SS":["a"]},"recommended":{"SS":["r"]}}`))
	if err != nil {
		t.Fatal(err)
	}
	m.put("build", it)
	m.run()
	want := `build_head {"artifacts":["a"],"build_id":"p!dev!1.0.0!en-US","cdn_url":"https://c","create_date":"2026-01-01T00:00:00Z","env":"dev","fingerprints":["f"],"history":[{"build_id":"p!dev!1.0.0!en-US","create_date":"2026-01-01T00:00:00Z","version":"1.0.0"}],"key":"p!dev","locale":"en-US","name":"p","previous_build_id":"x","recommended":["r"],"rollback_build_ids":{"0":"y"},"update_date":"2026-01-01T00:00:00Z","version":"1.0.0"}` + "\n"
	if got := m.state("build_head"); got != want {
		t.Errorf("%swant %s", got, want)
	}
	heads, err := m.Heads(t.Context(), "p", "dev")
	if err != nil || len(heads) != 1 || heads[0].RollbackIDs["0"] != "y" || heads[0].Updated == "" || heads[0].Recommended[0] != "r" {
		t.Errorf("%+v, %v", heads, err)
	}
	m.put("build", it.Without("cdn_url", "rollback_build_ids").With(item.String("previous_build_id", "z")))
	m.run()
	if got := m.state("build_head"); strings.Contains(got, "https://c") || strings.Contains(got, "rollback") || !strings.Contains(got, `"previous_build_id":"z"`) {
		t.Errorf("after a change: %s", got)
	}
}

// A build that cannot be a head is parked. If a head becomes such a build, the next
// build replaces it at the next change.
func TestBadBuilds(t *testing.T) {
	m := newMemory(t)
	good := built("1.0.0", "en-US", 1)
	for name, bad := range map[string]sluice.Item{
		"no build_id":      good.Without("build_id"),
		"another's name":   good.With(item.String("name", "q")),
		"a bad date":       good.With(item.String("create_date", "soon")),
		"a key of 4 parts": good.With(item.String("key", "p!dev!1!0")),
	} {
		m.put("build", bad)
		m.Records()
		rec := streamtest.Insert(m.table("build"), bad, streamtest.WithKeys("key", "locale"))
		if err := m.onBuild(t.Context(), &rec); !sluice.IsPermanent(err) {
			t.Errorf("%s: %v", name, err)
		}
		m.remove("build", buildKey(bad))
		m.Records()
	}
	m.put("build", good, built("1.1.0", "en-US", 2))
	m.run()
	m.put("build", built("1.1.0", "en-US", 2).With(item.String("create_date", "soon")))
	m.Records() // parked
	m.put("build", built("0.9.0", "en-US", 0))
	m.run()
	if got := m.head("en-US"); got != "1.0.0 2026-01-01 2026-01-01" {
		t.Error(got)
	}
}
