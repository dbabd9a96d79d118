package warehouse

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/item"
)

// Events come in the order of their time, in pages of any size.
func TestEventsByPages(t *testing.T) {
	m := newMemory(t)
	var want []string
	for i := range 7 {
		m.put("status_event", queuedEvent(later(i*3), "1.0.0", "1", ""))
		want = append(want, later(i*3))
	}
	m.put("status_event", queuedEvent("01", "1.0.0", "1", ""))
	want = append(want, "01") // parked; it has no time
	if slices.IsSorted(want) {
		t.Error("the order of the texts is the same: it shows nothing")
	}
	for limit := range 10 {
		var got []string
		after, pages := "", 0
		for {
			events, next, err := m.Events(t.Context(), "whatever", "dev", "1.0.0", limit, after)
			if err != nil {
				t.Fatal(err)
			}
			if limit > 0 && len(events) > limit {
				t.Errorf("%d events in a page of %d", len(events), limit)
			}
			for _, e := range events {
				got = append(got, e.ID)
			}
			if pages++; next == "" {
				break
			}
			after = next
		}
		if !slices.Equal(got, want) || limit > 0 && pages != (len(want)+limit-1)/limit {
			t.Errorf("in %d pages of %d: %v", pages, limit, got)
		}
	}
	if events, _, err := m.Events(t.Context(), "whatever", "dev", "1.0.0", 3, "zz"); err == nil || len(events) > 0 || !strings.Contains(err.Error(), "after is neither an id nor that of an event of the build: it has 2 characters; want a UUID") {
		t.Errorf("%v, %v", events, err)
	}
	if events, _, err := m.Events(t.Context(), "whatever", "dev", "1.0.0", 3, "01"); err != nil || len(events) > 0 {
		t.Errorf("after the last: %v, %v", events, err)
	}
	if events, next, err := m.Events(t.Context(), "nobody", "dev", "1.0.0", 3, ""); len(events) > 0 || next != "" || err != nil {
		t.Error(events, next, err)
	}
}

func TestReads(t *testing.T) {
	m := newMemory(t)
	str := item.String
	for _, f := range Fixtures() {
		m.put(f.Table, f.Item)
	}
	for _, v := range []string{"1.9.0", "1.10.0", "2.0.0"} {
		m.put("version", publish(v, "{}"))
	}
	m.put("version", item.Of(str("name", "web"), str("version", "1.0.0"), str("value", `{"dependencies":{"button":"1"}}`)))
	m.run()
	m.put("build_file", item.Of(str("fingerprint", "f1"), str("build_id", "b1"), str("url", "https://x/f1"), str("filename", "a.js"), str("extension", ".js")))
	m.put("build", item.Of(str("key", "email!prod!2.1"), str("locale", "da-DK"), str("build_id", "email!prod!2.1!da-DK"), str("name", "email"), str("env", "prod"), str("version", "2.1")))
	for _, d := range []string{"web", "app"} {
		m.put("release_line_dep", item.Of(str("key", "email!2.1.0"), str("dependent", d), str("dependent_version", "1.0.0")))
	}
	m.run()
	ctx := t.Context()
	versions := func(from, to string) string {
		vs, err := m.Versions(ctx, "email", from, to)
		var got []string
		for _, v := range vs {
			got = append(got, v.Version)
		}
		return fmt.Sprint(got, err)
	}
	line, found, err := m.ReleaseLine(ctx, "email", "2.1.0")
	lineText := fmt.Sprint(line.Previous, line.Dependents, found, err)
	_, found, err = m.ReleaseLine(ctx, "email", "9.0.0")
	noLine := fmt.Sprint(found, err)
	file, found, err := m.BuildFile(ctx, "f1")
	fileText := fmt.Sprint(file.BuildID, " ", file.URL, " ", file.Filename, " ", file.Extension, found, err)
	_, found, err = m.BuildFile(ctx, "f2")
	noFile := fmt.Sprint(found, err)
	p, found, err := m.Package(ctx, "email")
	packageText := fmt.Sprint(p.Version, p.Description, p.Dependencies, found, err)
	heads, err := m.Heads(ctx, "email", "prod")
	var headIDs []string
	for _, h := range heads {
		headIDs = append(headIDs, h.ID)
	}
	headsText := fmt.Sprint(headIDs, err)
	head, found, err := m.StatusHead(ctx, "whatever", "dev")
	headText := fmt.Sprint(head.Version, head.Previous, head.Total, found, err)
	lineHead, found, err := m.ReleaseLineHead(ctx, "email")
	lineHeadText := fmt.Sprint(lineHead.Version, lineHead.Previous, found, err)
	on, err := m.Dependents(ctx, "button")
	dependents := fmt.Sprint(on, err)
	on, err = m.Dependents(ctx, "nothing")
	noDependents := fmt.Sprint(on, err)
	of, err := m.DependentOf(ctx, "email")
	dependentOf := fmt.Sprint(of, err)
	builds, err := m.Builds(ctx, "email", "prod", "2.1")
	buildsText := fmt.Sprint(len(builds), builds[0].Locale, builds[1].PreviousID, builds[1].Fingerprints, err)
	for _, tt := range [][2]string{
		{versions("", ""), "[1.9.0 1.10.0 2.0.0 2.1.0] <nil>"},
		{versions("1.10.0", "2.0.0"), "[1.10.0 2.0.0] <nil>"},
		{versions("3.0.0", ""), "[] <nil>"},
		{lineText, "2.0.0[{email!2.1.0 app    1.0.0} {email!2.1.0 web    1.0.0}]true <nil>"},
		{noLine, "false <nil>"},
		{fileText, "b1 https://x/f1 a.js .jstrue <nil>"},
		{noFile, "false <nil>"},
		{packageText, "2.1.0Mailmap[button:^1.0.0 layout:^3.0.0]true <nil>"},
		{headsText, "[email!prod!2.1!da-DK email!prod!2.1!en-US] <nil>"},
		{headText, "1.0.00.9.02true <nil>"},
		{lineHeadText, "2.1.02.0.0true <nil>"},
		{dependents, "[email web] <nil>"},
		{noDependents, "[] <nil>"},
		{dependentOf, "button <nil>"},
		{buildsText, "2da-DKemail!prod!2.0!en-US[a.gz a]<nil>"},
	} {
		if strings.ReplaceAll(tt[0], " ", "") != strings.ReplaceAll(tt[1], " ", "") {
			t.Errorf("%s, want %s", tt[0], tt[1])
		}
	}
}

func TestPackagesByPages(t *testing.T) {
	m := newMemory(t)
	want := []string{"a", "b", "c", "d", "e"}
	for _, name := range want {
		m.put("package", item.Of(item.String("name", name), item.String("version", "1.0.0")))
	}
	for limit := range 7 {
		var got []string
		for after, more := "", true; more; more = after != "" {
			page, next, err := m.Packages(t.Context(), limit, after)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range page {
				got = append(got, p.Name)
			}
			after = next
		}
		if !slices.Equal(got, want) {
			t.Errorf("pages of %d: %v", limit, got)
		}
	}
	m.d.Scan = nil
	if _, _, err := m.Packages(t.Context(), 1, ""); err == nil {
		t.Error("packages were read without Deps.Scan")
	}
}
