package meadowlark

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/examples/meadowlark/writer"
	"github.com/sluicehq/sluice/internal/tabletest"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/streamtest"
)

// A client of OpenSearch keeps its connections open.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

// world has Meadowlark's table, indices and queues in memory.
type world struct {
	*tabletest.World
	docs    *streamtest.Index
	router  *router.Router
	alerts  []string
	dropped []string

	alertFails error
}

// inWorld runs f in a world of its own, where time passes as it is waited for.
func inWorld(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{World: tabletest.NewWorld(time.Date(2021, 12, 6, 16, 0, 0, 0, time.UTC)), docs: streamtest.NewIndex()}
		w.Create(writer.DefaultTable, "pk", "sk")
		var err error
		w.router, err = NewRouter(Deps{
			Store: w.World, Resources: Resources(), Write: w.docs.Write, Check: w.Queue("checks"),
			Alert: func(_ context.Context, m sluice.Message) error {
				if m.Attributes["dedupeKey"].Value == "" {
					t.Errorf("an alert without a dedupeKey: %s", m.Body)
				}
				if w.alertFails != nil {
					return w.alertFails
				}
				w.alerts = append(w.alerts, m.Body)
				return nil
			},
			Dropped: func(_, field string) { w.dropped = append(w.dropped, field) },
			Now:     w.Now, Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		f(t, w)
	})
}

func (w *world) put(t *testing.T, items ...sluice.Item) {
	t.Helper()
	for _, it := range items {
		if err := w.Put(t.Context(), writer.DefaultTable, it); err != nil {
			t.Fatal(err)
		}
	}
}

func (w *world) delete(t *testing.T, key sluice.Item) {
	t.Helper()
	if err := w.World.Write(t.Context(), dynamo.Delete(writer.DefaultTable, key.Only("pk", "sk"))); err != nil {
		t.Fatal(err)
	}
}

// run goes on until nothing is left to do in the time.
func (w *world) run(t *testing.T, d time.Duration) {
	t.Helper()
	if err := w.Run(t.Context(), w.router.Dispatch, w.Now().Add(d)); err != nil {
		t.Fatal(err)
	}
	if len(w.Parked) > 0 {
		t.Fatal(w.Parked)
	}
}

// told returns the alerts since the last call.
func (w *world) told() []string {
	alerts := w.alerts
	w.alerts = nil
	return alerts
}

func (w *world) doc(index, id string) document.Doc {
	return w.docs.Get(document.Ref{Index: index, ID: id})
}

// Places of the documents among the fixtures.
const (
	levels = iota
	other
	guard
	school
	assign
	course
	fref
	tref
)

const (
	levelsID = "0f1474d47271406f6b47eabeba2fca6dd5a8b49a3b9d4e5b8d0e87e8"
	otherID  = "04c7f019c56684b0539135ab2d955e4c03bc85b3841cdd87fb970f35"
	schoolID = "7a5cf3f4a68015c0922e24c73401a21e9fd1767ef60c0b3300f2301e"
	courseID = "2717e6e9275502cb2da0e3bdbf5c2ba3395f9e2117bdc7e03c216138"

	schoolIndex = "type$ed-fi$3-3-1-b$school"
	courseIndex = "type$ed-fi$3-3-1-b$course"
)

// expected are the documents of the fixtures; info stands there as it is, not
// as the string of it.
var expected = []struct {
	index, id string
	version   int64
	fields    string // of the copy, before info
	info      string
	after     string
}{
	{
		"type$ed-fi$3-3-1-b$schoolcategorydescriptor", levelsID, 1638800000000000,
		`"codeValue":"All Levels"`,
		`{"codeValue":"All Levels","id":"` + levelsID + `"}`, ``,
	},
	{
		"type$ed-fi$3-3-1-b$educationorganizationcategorydescriptor", otherID, 1638800000000001,
		`"codeValue":"Other"`,
		`{"codeValue":"Other","id":"` + otherID + `"}`, ``,
	},
	{
		courseIndex, courseID, 1638804723000000,
		`"courseCode":"1234","courseTitle":"A Course","numberOfParts":1,"identificationCodes":[],"educationOrganizationReference":{"educationOrganizationId":122}`,
		`{"courseCode":"1234","courseTitle":"A Course","educationOrganizationReference":{"educationOrganizationId":122},"id":"2717e6e9275502cb2da0e3bdbf5c2ba3395f9e2117bdc7e03c216138","identificationCodes":[],"numberOfParts":1}`, ``,
	},
	{
		schoolIndex, schoolID, 1638802062000000,
		`"schoolId":122,"nameOfInstitution":"A School","gradeLevels":[],"schoolCategories":[{"schoolCategoryDescriptor":"uri://ed-fi.org/SchoolCategoryDescriptor#All Levels"}],"educationOrganizationCategories":[{"educationOrganizationCategoryDescriptor":"uri://ed-fi.org/EducationOrganizationCategoryDescriptor#Other"}]`,
		`{"educationOrganizationCategories":[{"educationOrganizationCategoryDescriptor":"uri://ed-fi.org/EducationOrganizationCategoryDescriptor#Other"}],"gradeLevels":[],"id":"7a5cf3f4a68015c0922e24c73401a21e9fd1767ef60c0b3300f2301e","nameOfInstitution":"A School","schoolCategories":[{"schoolCategoryDescriptor":"uri://ed-fi.org/SchoolCategoryDescriptor#All Levels"}],"schoolId":122}`,
		`,"createdBy":"vendor1","extractedEdOrgId":"122"`,
	},
}

// renamed is the school of the fixtures with another name and a later rev.
func renamed(name string, rev int64) sluice.Item {
	it := Fixtures()[school]
	info, _ := it.Lookup("info")
	return it.With(item.Number("rev", fmt.Sprint(rev)), item.Map("info", info.Map().With(item.String("nameOfInstitution", name))))
}
