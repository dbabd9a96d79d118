//go:build integration

package meadowlark

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/examples/internal/kit"
	"github.com/sluicehq/sluice/examples/meadowlark/writer"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/streamtest"
)

// From the table by its stream into OpenSearch: exactly the four documents, and
// what becomes of them.
func TestFixtures(t *testing.T) {
	localtest.OpenSearch(t, func(t *testing.T, url string) {
		l := newLocal(t, url)
		l.poll()
		fx := Fixtures()
		l.put(fx...)
		l.wait("document", 4)
		if names := l.names(t.Context()); len(names) != 4 {
			t.Errorf("indices %v", names)
		}
		for _, want := range expected {
			d := l.doc(want.index, want.id)
			if !d.Found || d.Version != want.version {
				t.Fatalf("%s: %+v", want.index, d)
			}
			var got, fields map[string]any
			decode(t, d.Source, &got)
			if got["info"] != want.info {
				t.Errorf("%s: info\n%v\nwant\n%s", want.index, got["info"], want.info)
			}
			decode(t, []byte(`{"id":"`+want.id+`",`+want.fields+`,"info":`+string(item.AppendString(nil, want.info))+want.after+`}`), &fields)
			if diff := cmp.Diff(fields, got); diff != "" {
				t.Errorf("%s: %s", want.index, diff)
			}
			if n := l.count(want.index); n != 1 {
				t.Errorf("%s has %d documents", want.index, n)
			}
		}

		inserted := streamtest.Insert(l.table, fx[school], streamtest.WithKeys("pk", "sk"))
		l.put(renamed("New", 1638802062000001))
		l.wait("document", 5)
		l.name("New", 1638802062000001)
		l.dispatch(&inserted)
		l.name("New", 1638802062000001)
		if n := l.counts.Sum("sluice_document_conflicts_total"); n != 1 {
			t.Errorf("%d conflicts", n)
		}

		l.delete(fx[school])
		l.wait("clean up", 1)
		l.wait("dangling", 1)
		l.wait("document", 6)
		l.dispatch(&inserted)
		if d := l.doc(schoolIndex, schoolID); d.Found {
			t.Errorf("%s came back", d.Source)
		}
		if n := l.counts.Sum("sluice_document_conflicts_total"); n != 2 {
			t.Errorf("%d conflicts", n)
		}
		alert := `{"kind":"integrity.dangling","id":"` + schoolID + `","type":"` + School + `","foreignKeys":[` + courseKey + `],"dedupeKey":"` + schoolID + `#1638802062000001"}`
		if diff := cmp.Diff([]string{alert}, noted(l, &l.alerts)); diff != "" {
			t.Error(diff)
		}
		if parked := noted(l, &l.parked); len(parked) > 0 {
			t.Errorf("parked %v", parked)
		}
	})
}

func decode(t *testing.T, data []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("%v: %s", err, data)
	}
}

// count is how many documents an index has.
func (l *local) count(index string) int {
	l.t.Helper()
	var answer struct{ Count int }
	path := "/" + url.PathEscape(l.prefix+index)
	if err := l.client.Call(l.t.Context(), "POST", path+"/_refresh", nil, nil); err != nil {
		l.t.Fatal(err)
	}
	if err := l.client.Call(l.t.Context(), "GET", path+"/_count", nil, &answer); err != nil {
		l.t.Fatal(err)
	}
	return answer.Count
}

func (l *local) dispatch(rec *sluice.Record) {
	l.t.Helper()
	if err := l.router.Dispatch(l.t.Context(), rec); err != nil {
		l.t.Error(err)
	}
}

func (l *local) name(want string, version int64) {
	l.t.Helper()
	d := l.doc(schoolIndex, schoolID)
	var got struct{ NameOfInstitution, Info string }
	decode(l.t, d.Source, &got)
	if d.Version != version || got.NameOfInstitution != want || !strings.Contains(got.Info, `"nameOfInstitution":"`+want+`"`) {
		l.t.Errorf("%d %+v, want %s", d.Version, got, want)
	}
}

// What documents may hold that nobody has thought of, one after another into the
// same index.
func TestMapping(t *testing.T) {
	l := newLocal(t, localtest.OpenSearchURL(t))
	const huge = "12345678901234567890123456789012345678"
	many := make([]string, 10_000)
	for i := range many {
		many[i] = fmt.Sprintf(`"key%d":%d`, i, i)
	}
	deep := strings.Repeat(`{"a":`, 25) + "1" + strings.Repeat("}", 25)
	rev := 0
	for _, tt := range []struct {
		name, info, parked string
	}{
		{"numbers", `{"n":122,"tiny":1e-130,"great":9.99e125}`, ""},
		{"38 digits", `{"n":` + huge + `,"l":[-0.` + huge + `,1]}`, ""},
		{"a fraction where an integer was", `{"n":0.5}`, ""},
		{"what looks like a date", `{"s":"2021-12-06"}`, ""},
		{"what does not", `{"s":"soon"}`, ""},
		{"what looks like a number", `{"s":"122"}`, ""},
		{"control characters", `{"s":"\u0000\n\t\\\"<>&é😀"}`, ""},
		{"long", `{"s":"` + strings.Repeat("x", 180_000) + `"}`, ""},
		{"reserved names", `{"id":"other","info":{"a":1},"createdBy":"you","securityEdOrgId":["x"],"extractedEdOrgId":1,"extractedStudentId":1,"securityStudentId":1}`, ""},
		{"an object where a text was", `{"s":{"a":1}}`, "mapper_parsing_exception"},
		{"10,000 keys", `{` + strings.Join(many, ",") + `}`, "Limit of total fields"},
		{"keys of maps", `{"m":{` + strings.Join(many[:2000], ",") + `}}`, "Limit of total fields"},
		{"too deep", deep, "mapper_parsing_exception"},
		{"afterwards", `{"new":true,"n":1}`, ""},
	} {
		rev++
		before := l.fields()
		it := l.entity("TYPE#Ed-Fi#3.3.1-b#Any", "x", fmt.Sprint(rev), tt.info)
		rec := streamtest.Insert(l.table, it, streamtest.WithKeys("pk", "sk"))
		err := l.router.Dispatch(t.Context(), &rec)
		if tt.parked != "" {
			var d *document.Error
			if !sluice.IsPermanent(err) || !errors.As(err, &d) || d.Status != 400 || !strings.Contains(d.Type+" "+d.Reason, tt.parked) {
				t.Errorf("%s: %v, want it parked: %s", tt.name, err, tt.parked)
			}
			if after := l.fields(); after != before {
				t.Errorf("%s: the mapping grew from %d bytes to %d", tt.name, before, after)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		d := l.doc("type$ed-fi$3-3-1-b$any", "x")
		got, err := item.FromJSON(d.Source)
		if err != nil || d.Version != int64(rev) {
			t.Errorf("%s: %v, version %d", tt.name, err, d.Version)
			continue
		}
		want, _ := it.Lookup("info")
		for name, v := range want.Map().All() {
			switch name {
			case "id", "info", "createdBy", "securityEdOrgId", "extractedEdOrgId", "extractedStudentId", "securityStudentId":
				if found, ok := got.Lookup(name); ok && found.Equal(v) {
					t.Errorf("%s: field %s is the document's own", tt.name, name)
				}
			default:
				if found, _ := got.Lookup(name); !found.Equal(v) {
					t.Errorf("%s: field %s is %s, want %s", tt.name, name, found.Raw(), v.Raw())
				}
			}
		}
		// The text has them all, digit by digit.
		info, err := item.FromJSON([]byte(kit.Text(got, "info")))
		if err != nil || !info.Equal(want.Map().With(item.String("id", "x"))) {
			t.Errorf("%s: info is %.200s, %v", tt.name, kit.Text(got, "info"), err)
		}
	}
	if got := noted(l, &l.dropped); len(got) != 7 {
		t.Errorf("dropped %v", got)
	}
}

// fields is the size of the mapping.
func (l *local) fields() int {
	l.t.Helper()
	var mapping []byte
	if err := l.client.Call(l.t.Context(), "GET", "/"+l.prefix+"*/_mapping", nil, &mapping); err != nil {
		l.t.Fatal(err)
	}
	return len(mapping)
}

// Documents are looked for by what they hold.
func TestSearch(t *testing.T) {
	l := newLocal(t, localtest.OpenSearchURL(t))
	for _, it := range Fixtures() {
		rec := streamtest.Insert(l.table, it, streamtest.WithKeys("pk", "sk"))
		l.dispatch(&rec)
	}
	for query, want := range map[string]int{
		`{"term":{"createdBy":"vendor1"}}`:                                                              1,
		`{"term":{"extractedEdOrgId":"122"}}`:                                                           1,
		`{"match":{"nameOfInstitution":"school"}}`:                                                      1,
		`{"term":{"schoolId":122}}`:                                                                     1,
		`{"range":{"educationOrganizationReference.educationOrganizationId":{"gte":122}}}`:              1,
		`{"term":{"codeValue.keyword":"All Levels"}}`:                                                   1,
		`{"term":{"id":"` + courseID + `"}}`:                                                            1,
		`{"terms":{"id":["` + courseID + `","` + schoolID + `","` + levelsID + `","` + otherID + `"]}}`: 4,
	} {
		for _, index := range l.names(t.Context()) {
			l.count(strings.TrimPrefix(index, l.prefix)) // makes what was written visible
		}
		var answer struct {
			Hits struct{ Total struct{ Value int } }
		}
		if err := l.client.Call(t.Context(), "POST", "/"+l.prefix+"*/_search", []byte(`{"query":`+query+`}`), &answer); err != nil || answer.Hits.Total.Value != want {
			t.Errorf("%s: %d, %v", query, answer.Hits.Total.Value, err)
		}
	}
}

func TestTemplateIsLookedFor(t *testing.T) {
	l := newLocal(t, localtest.OpenSearchURL(t))
	if err := l.indices.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if err := (Indices{Call: l.client.Call, Prefix: l.prefix + "other-"}).Check(t.Context()); err == nil || !strings.Contains(err.Error(), "`meadowlark create` installs it") {
		t.Error(err)
	}
}

// OpenSearch is down for three attempts: nothing is lost.
func TestOutage(t *testing.T) {
	for name, fault := range map[string]streamtest.ProxyFault{
		"unreachable":      {Path: "/_bulk", Times: 3, Drop: true},
		"overloaded":       {Path: "/_bulk", Times: 3, Status: 429},
		"down":             {Path: "/_bulk", Times: 3, Status: 503},
		"answers are lost": {Path: "/_bulk", Times: 3, DropAnswer: true},
	} {
		t.Run(name, func(t *testing.T) {
			proxy := streamtest.NewProxy(t, localtest.OpenSearchURL(t))
			l := newLocal(t, proxy.URL())
			proxy.Fail(fault)
			l.put(Fixtures()...)
			l.poll()
			l.wait("document", 4)
			for _, want := range expected {
				if d := l.doc(want.index, want.id); d.Version != want.version {
					t.Errorf("%+v", d)
				}
			}
			if c := proxy.Counts(); c.Dropped+c.Answered+c.AnswersDropped != 3 {
				t.Errorf("%+v", c)
			}
		})
	}
}

func TestRaces(t *testing.T) { races(t, 60) }

// Of a course that is written and its school that is deleted at the same time,
// one wins, in each of so many races.
func races(t *testing.T, races int) {
	const beside = 10
	l := newLocal(t, localtest.OpenSearchURL(t))
	w, err := writer.New(writer.Config{Store: l.store, Table: l.table, Resources: Resources()})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range Documents()[:2] {
		if err := w.Create(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	wins := map[string]int{}
	var running sync.WaitGroup
	for n := range beside {
		running.Go(func() {
			for i := range races / beside {
				who, err := race(t.Context(), w, fmt.Sprint(n*races+i), i%2 == 0)
				if err != nil {
					t.Errorf("race %d of %d: %v", i, n, err)
					return
				}
				mu.Lock()
				wins[who]++
				mu.Unlock()
			}
		})
	}
	running.Wait()
	t.Log(wins)
	if wins["create"] == 0 || wins["delete"] == 0 {
		t.Errorf("%v: it was no race", wins)
	}
	// And the table says so.
	kinds := map[string]int{}
	counts := map[string]int64{}
	for it, err := range l.scan() {
		if err != nil {
			t.Fatal(err)
		}
		kind := writer.Kind(it)
		kinds[kind]++
		if v, ok := it.Lookup("refCount"); ok {
			n, _ := v.Int64()
			counts[kind] += n
		}
	}
	won := wins["create"]
	if diff := cmp.Diff(map[string]int{writer.Entity: 2 + 2*won, writer.Guard: won, writer.Assign: won, writer.FRef: won, writer.TRef: won}, kinds); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]int64{writer.Guard: 0, writer.Assign: int64(won)}, counts); diff != "" {
		t.Error(diff)
	}
}

func race(ctx context.Context, w *writer.Writer, id string, look bool) (winner string, err error) {
	school, course := Documents()[2], Documents()[3]
	school.NaturalKey, school.Identity = "NK#schoolId="+id, "NK#educationOrganizationId="+id
	course.NaturalKey += "#" + id
	course.References[0].NaturalKey = school.Identity
	if err := w.Create(ctx, school); err != nil {
		return "", err
	}
	var created, deleted error
	var both sync.WaitGroup
	both.Go(func() {
		if look { // who deletes reads more before it writes, and else nearly always loses
			if _, _, created = w.Document(ctx, school.Type, school.ID()); created != nil {
				return
			}
		}
		created = w.Create(ctx, course)
	})
	both.Go(func() { deleted = w.Delete(ctx, school.Type, school.ID()) })
	both.Wait()
	switch {
	case created == nil && errors.Is(deleted, writer.ErrReferenced):
		return "create", nil
	case deleted == nil && errors.Is(created, writer.ErrReference):
		return "delete", nil
	}
	return "", fmt.Errorf("create: %w, delete: %w", created, deleted)
}

// The writer on a real table.
func TestWriter(t *testing.T) {
	l := newLocal(t, localtest.OpenSearchURL(t))
	ctx := t.Context()
	w, err := writer.New(writer.Config{Store: l.store, Table: l.table, Resources: Resources()})
	if err != nil {
		t.Fatal(err)
	}
	docs := Documents()
	for _, d := range docs {
		if err := w.Create(ctx, d); err != nil {
			t.Fatal(err)
		}
		if err := w.Create(ctx, d); !errors.Is(err, writer.ErrExists) {
			t.Errorf("a second time: %v", err)
		}
	}
	want := func(what string, err, want error) {
		t.Helper()
		if !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	school, course := docs[2], docs[3]
	lea := school
	lea.Type = "TYPE#Ed-Fi#3.3.1-b#LocalEducationAgency"
	want("another kind of it", w.Create(ctx, lea), writer.ErrExists)
	want("delete of what is referred to", w.Delete(ctx, school.Type, school.ID()), writer.ErrReferenced)
	missing := course
	missing.References = []writer.Reference{{Type: EducationOrganization, NaturalKey: "NK#educationOrganizationId=9"}}
	want("update to what is not there", w.Update(ctx, missing), writer.ErrReference)
	course.SecurityStudentID, course.SecurityEdOrgID = "604822", "122"
	want("update", w.Update(ctx, course), nil)
	secured := dynamo.Query{Table: l.table, Index: "SecurityStudentEdOrgGSI", Partition: item.String("securityStudentId", "604822")}
	if page, err := l.store.Query(ctx, secured); err != nil || len(page.Items) != 1 || writer.EntityID(page.Items[0]) != courseID {
		t.Errorf("%+v, %v", page, err)
	}
	course.References = nil
	want("update to refer to nothing", w.Update(ctx, course), nil)
	want("delete", w.Delete(ctx, school.Type, school.ID()), nil)
	want("a second time", w.Delete(ctx, school.Type, school.ID()), writer.ErrNotFound)

	// Past the writer.
	want("create", w.Create(ctx, lea), nil)
	course.References = []writer.Reference{{Type: lea.Type, NaturalKey: lea.Identity}}
	want("update", w.Update(ctx, course), nil)
	l.delete(writer.EntityKey(course.Type, course.ID()))
	l.delete(writer.EntityKey(lea.Type, lea.ID()))
	for _, d := range []writer.Document{lea, course, lea} {
		again, err := w.Clean(ctx, d.Type, d.ID())
		if again {
			t.Errorf("%s is there", d.Type)
		}
		want("clean up", err, nil)
	}
	for _, d := range docs[:2] {
		want("delete", w.Delete(ctx, d.Type, d.ID()), nil)
	}
	for it, err := range l.scan() {
		t.Errorf("left over: %s, %v", it.Raw(), err)
	}
}
