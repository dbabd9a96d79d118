package writer

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/item"
)

func TestID(t *testing.T) {
	for key, want := range map[string]string{
		"NK#uri://ed-fi.org/SchoolCategoryDescriptor#All Levels":                        "0f1474d47271406f6b47eabeba2fca6dd5a8b49a3b9d4e5b8d0e87e8",
		"NK#uri://ed-fi.org/EducationOrganizationCategoryDescriptor#Other":              "04c7f019c56684b0539135ab2d955e4c03bc85b3841cdd87fb970f35",
		"NK#educationOrganizationId=122":                                                "7a5cf3f4a68015c0922e24c73401a21e9fd1767ef60c0b3300f2301e",
		"NK#courseCode=1234#educationOrganizationReference.educationOrganizationId=122": "2717e6e9275502cb2da0e3bdbf5c2ba3395f9e2117bdc7e03c216138",
	} {
		if got := ID(key); got != want {
			t.Errorf("%s: %s, want %s", key, got, want)
		}
	}
}

func TestKind(t *testing.T) {
	for _, tt := range []struct{ pk, sk, want string }{
		{"TYPE#Ed-Fi#3.3.1-b#School", "ID#7a5c", Entity},
		{"TYPE#Ed-Fi#3.3.1-b#SchoolCategoryDescriptor", "ID#0f14", Entity},
		{"TYPE#Ed-Fi#3.3.1-b#School", "REFC#ID#7a5c", Guard},
		{"TYPE#Ed-Fi#3.3.1-b#EducationOrganization", "ASSIGN#ID#7a5c", Assign},
		{"FREF#ID#2717", "TREF#ID#7a5c", FRef},
		{"TREF#ID#7a5c", "FREF#ID#2717", TRef},
		{"TYPE#Ed-Fi#3.3.1-b#School", "OTHER#7a5c", ""},
		{"OTHER#1", "ID#7a5c", ""},
	} {
		if got := Kind(key(tt.pk, tt.sk)); got != tt.want {
			t.Errorf("%s %s: %q, want %q", tt.pk, tt.sk, got, tt.want)
		}
	}
	if got := Kind(item.Of(item.Number("pk", "1"))); got != "" {
		t.Errorf("a key that is a number: %q", got)
	}
}

func TestCreate(t *testing.T) {
	for _, tt := range []struct {
		name string
		d    Document
		want error
		then string // the table, beside what was there
	}{
		{"school", doc("S2", "G1"), nil, "S/O2 O/O2=0 S/O2=0"},
		{"course", doc("C2", "O1", "C1", "C1", "G1", "G1", "C2"), nil, "C/C2 C/C2=0 C2>C1 C2>O1 C1<C2 O1<C2"},
		{"of two names of one", doc("C2", "O1", "S1"), nil, "C/C2 C/C2=0 C2>O1 O1<C2"},
		{"not referenced", doc("X2", "O1"), nil, "X/X2 X2>O1 O1<X2"},
		{"it exists", doc("C1"), ErrExists, ""},
		{"another kind of it exists", doc("A1"), ErrExists, ""},
		{"no such reference", doc("C2", "O1", "O3", "C3", "G1", "G3"), &ReferenceError{[]Reference{reference("O3"), reference("C3"), reference("G3")}}, ""},
		{"of another kind", doc("C2", "A1"), &ReferenceError{[]Reference{reference("A1")}}, ""},
		{"of the right and of another kind", doc("C2", "O1", "A1"), &ReferenceError{[]Reference{reference("A1")}}, ""},
		{"nobody may refer to it", doc("C2", "X1"), &ReferenceError{[]Reference{reference("X1")}}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.create(t, doc("G1"), doc("S1"), doc("C1"), doc("X1"))
			before := w.state()
			err := w.Writer.Create(t.Context(), tt.d)
			var missing, want *ReferenceError
			switch {
			case !errors.As(tt.want, &want):
				if !errors.Is(err, tt.want) {
					t.Fatalf("%v, want %v", err, tt.want)
				}
			case !errors.As(err, &missing) || !errors.Is(err, ErrReference) || !cmp.Equal(want.Missing, missing.Missing):
				t.Fatalf("%v, want %v", err, tt.want)
			}
			if tt.want != nil {
				w.expect(t, before)
				return
			}
			for word := range strings.FieldsSeq(tt.then) {
				if !strings.Contains(" "+w.state()+" ", " "+word+" ") {
					t.Errorf("no %s in %s", word, w.state())
				}
			}
			if got, want := len(strings.Fields(w.state())), len(strings.Fields(before+" "+tt.then)); got != want {
				t.Errorf("%d items, want %d: %s", got, want, w.state())
			}
		})
	}
}

func TestInvalid(t *testing.T) {
	change := func(f func(*Document)) Document { d := doc("S1"); f(&d); return d }
	many := doc("C1")
	for range 40 {
		many.References = append(many.References, Reference{Type: course, NaturalKey: "NK#" + strings.Repeat("x", len(many.References))})
	}
	for want, d := range map[string]Document{
		"Type is":              change(func(d *Document) { d.Type = "School" }),
		"only kinds":           change(func(d *Document) { d.Type = org }),
		"NaturalKey is":        change(func(d *Document) { d.NaturalKey = "1" }),
		`Identity is ""`:       change(func(d *Document) { d.Identity = "" }),
		`Identity is "1"`:      change(func(d *Document) { d.Identity = "1" }),
		"Info is absent":       change(func(d *Document) { d.Info = item.Item{} }),
		`a reference to "1"`:   change(func(d *Document) { d.References = []Reference{{Type: course, NaturalKey: "1"}} }),
		"too many references":  many,
		`Identity is "NK#O1"`:  func() Document { d := doc("C1"); d.Identity = "NK#O1"; return d }(),
		`of type "", want NK#`: change(func(d *Document) { d.References = []Reference{{NaturalKey: "NK#1"}} }),
	} {
		w := newWorld(t)
		err := w.Writer.Create(t.Context(), d)
		var bad *InvalidError
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		w.expect(t, "")
	}
}

func TestUpdate(t *testing.T) {
	w := newWorld(t)
	w.create(t, doc("G1"), doc("S1"), doc("S2"), doc("C1"), doc("C2", "O1", "C1", "G1"))
	ctx := t.Context()
	d := doc("C2", "O1", "S2")
	d.Info = item.Of(item.String("name", "new"))
	if err := w.Update(ctx, d); err != nil {
		t.Fatal(err)
	}
	after := "C/C1 C/C1=0 C/C2 C/C2=0 C2>O1 C2>O2 GradeDescriptor/G1 O/O1=1 O/O2=0 O1<C2 O2<C2 S/O1 S/O1=0 S/O2 S/O2=1"
	w.expect(t, after)
	got, ok, err := w.Document(ctx, course, d.ID())
	if err != nil || !ok || got.Rev != 1005 || !got.Info.Equal(d.Info) || got.NaturalKey != d.NaturalKey {
		t.Errorf("%+v, %v, %v", got, ok, err)
	}

	w.now = 5_000
	for name, tt := range map[string]struct {
		d    Document
		want string
	}{
		"not there":         {doc("C3"), ErrNotFound.Error()},
		"refers to nothing": {doc("C2", "O3"), ErrReference.Error()},
		"of another name":   {func() Document { d := doc("S1"); d.NaturalKey = "NK#other"; return d }(), "cannot become"},
	} {
		if err := w.Update(ctx, tt.d); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
		w.expect(t, after)
	}
	w.now = 6_000
	if err := w.Update(ctx, d); err != nil {
		t.Fatal(err)
	}
	if got, _, _ := w.Document(ctx, course, d.ID()); got.Rev != 6_000 {
		t.Errorf("rev is %d", got.Rev)
	}
	w.expect(t, after)
}

func set[T comparable](all ...T) map[T]bool {
	m := map[T]bool{}
	for _, x := range all {
		m[x] = true
	}
	return m
}

// A document that is read has the id that it was read by.
func TestReadBack(t *testing.T) {
	w := newWorld(t)
	d := doc("S1")
	d.OwnerID, d.SecurityEdOrgID = "me", "122"
	w.create(t, d)
	got, ok, err := w.Document(t.Context(), school, d.ID())
	if err != nil || !ok || got.ID() != d.ID() || got.OwnerID != "me" || got.SecurityEdOrgID != "122" || got.EdOrgID != "" || got.Rev != 1000 {
		t.Errorf("%+v, %v, %v", got, ok, err)
	}
	if got.NaturalKey = "NK#S2"; got.ID() != ID("NK#S2") {
		t.Error("it kept its id under another name")
	}
	if _, ok, err := w.Document(t.Context(), school, "nobody"); ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
}

func TestDelete(t *testing.T) {
	w := newWorld(t)
	w.create(t, doc("G1"), doc("S1", "G1"), doc("C1", "O1"), doc("X1", "S1", "C1"))
	ctx := t.Context()
	refused := func(name string, want ...ForeignKey) {
		t.Helper()
		before := w.state()
		d := doc(name)
		err := w.Writer.Delete(ctx, d.Type, d.ID())
		var r *ReferencedError
		if !errors.As(err, &r) || !errors.Is(err, ErrReferenced) || !cmp.Equal(set(want...), set(r.ForeignKeys...)) {
			t.Errorf("deleting %s: %v, want %v", name, err, want)
		}
		w.expect(t, before)
	}
	deleted := func(name string) {
		t.Helper()
		d := doc(name)
		if err := w.Writer.Delete(ctx, d.Type, d.ID()); err != nil {
			t.Error(err)
		}
	}
	refused("S1", ForeignKey{"NK#C1", course}, ForeignKey{"NK#X1", section})
	refused("C1", ForeignKey{"NK#X1", section})
	deleted("X1")
	refused("S1", ForeignKey{"NK#C1", course})
	deleted("C1")
	deleted("S1")
	deleted("G1")
	w.expect(t, "")
	if err := w.Writer.Delete(ctx, school, ID("NK#O1")); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
}

// A document can be deleted although the count of its target is gone.
func TestDeleteWithoutTheOthersCount(t *testing.T) {
	w := newWorld(t)
	w.create(t, doc("C1"), doc("X1", "C1"))
	for _, k := range []string{entityPrefix, guardPrefix} {
		if err := w.Write(t.Context(), dynamo.Delete(DefaultTable, key(course, k+ID("NK#C1")))); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Writer.Delete(t.Context(), section, ID("NK#X1")); err != nil {
		t.Fatal(err)
	}
	w.expect(t, "")
}

// A document that was deleted past the writer can be written again: who referred
// to it does so still.
func TestCreateAgain(t *testing.T) {
	w := newWorld(t)
	w.create(t, doc("S1"), doc("C1", "O1"))
	whole := w.state()
	w.raw(t, doc("S1"))
	w.create(t, doc("S1"))
	w.expect(t, whole)

	// And refers to something else from now on.
	w.create(t, doc("S2"))
	w.raw(t, doc("C1"))
	w.create(t, doc("C1", "S2"))
	if s := " " + w.state() + " "; !strings.Contains(s, " C1>O2 ") || strings.Contains(s, "C1>O1") || !strings.Contains(s, " O/O1=0 ") || !strings.Contains(s, " S/O2=1 ") {
		t.Error(s)
	}
}

func TestClean(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	clean := func(name string, want bool) {
		t.Helper()
		d := doc(name)
		for range 2 {
			if again, err := w.Clean(ctx, d.Type, d.ID()); again != want || err != nil {
				t.Errorf("%s: %v, %v", name, again, err)
			}
		}
	}
	w.create(t, doc("S1"))
	alone := w.state()
	w.create(t, doc("C1", "O1"))
	whole := w.state()
	clean("C1", true)
	w.expect(t, whole)

	w.raw(t, doc("C1"))
	clean("C1", false)
	w.expect(t, alone)

	w.create(t, doc("C1", "O1"))
	w.raw(t, doc("S1"))
	clean("S1", false) // the count that is 0 goes, the other one says that somebody refers to it
	if want := strings.TrimSuffix(whole, " S/O1 S/O1=0"); want == whole {
		t.Fatal(whole)
	} else {
		w.expect(t, want)
	}
	w.create(t, doc("A1")) // it takes the place of S1 as an organization
	clean("S1", false)
	w.raw(t, doc("C1"))
	clean("C1", false)
	clean("S1", false)
	w.expect(t, "A/O1 A/O1=0 O/O1=0")

	// A document whose counts are gone, too.
	w.create(t, doc("X1", "A1"))
	if err := w.Write(ctx, dynamo.Delete(DefaultTable, key(agency, guardPrefix+ID("NK#O1")))); err != nil {
		t.Fatal(err)
	}
	w.raw(t, doc("X1"))
	clean("X1", false)
	w.expect(t, "A/O1 O/O1=0")
}

// When the last reference to a document deleted past the writer is gone, no new one is
// possible.
func TestCleanCount(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	left := func(from, to, counter string) {
		t.Helper()
		it := key(fromPrefix+ID("NK#"+from), toPrefix+ID("NK#"+to)).With(item.Map("to", key(counter, assignPrefix+ID("NK#"+to))))
		for range 2 {
			if err := w.CleanCount(ctx, it); err != nil {
				t.Error(err)
			}
		}
	}
	w.create(t, doc("S1"), doc("X1", "O1"), doc("X2", "O1"))
	if err := w.Writer.Delete(ctx, section, ID("NK#X1")); err != nil {
		t.Fatal(err)
	}
	left("X1", "O1", org)
	w.raw(t, doc("S1"))
	if err := w.clean(ctx, "S1"); err != nil {
		t.Fatal(err)
	}
	left("X1", "O1", org)
	w.expect(t, "O/O1=1 O1<X2 X/X2 X2>O1") // somebody refers to it
	if err := w.Writer.Delete(ctx, section, ID("NK#X2")); err != nil {
		t.Fatal(err)
	}
	w.create(t, doc("A1"))
	left("X2", "O1", org)
	w.expect(t, "A/O1 A/O1=0 O/O1=0") // another kind of it is there
	w.raw(t, doc("A1"))
	left("X2", "O1", org)
	w.expect(t, "A/O1=0")
	if err := w.Writer.Create(ctx, doc("X1", "O1")); !errors.Is(err, ErrReference) {
		t.Errorf("a reference to nothing: %v", err)
	}
	if err := w.CleanCount(ctx, key(fromPrefix+"a", toPrefix+"b")); err != nil {
		t.Errorf("a reference that does not say to what: %v", err)
	}
}

func TestForeignKeysAreBounded(t *testing.T) {
	w := newWorld(t)
	w.create(t, doc("C1"))
	for i := range MaxForeignKeys + 20 {
		d := doc("X1", "C1")
		d.NaturalKey += "-" + strings.Repeat("x", i)
		w.create(t, d)
	}
	keys, err := w.ForeignKeys(t.Context(), ID("NK#C1"))
	if err != nil || len(keys) != MaxForeignKeys {
		t.Errorf("%d, %v", len(keys), err)
	}
}

func TestAnswer(t *testing.T) {
	for _, tt := range []struct {
		err    error
		status int
		body   string
	}{
		{&ReferencedError{[]ForeignKey{{"NK#C1", course}}}, http.StatusConflict, `{"error":"Unable to delete this item because there are foreign keys pointing to it","foreignKeys":[{"NaturalKey":"NK#C1","Type":"TYPE#C"}]}`},
		{&ReferenceError{[]Reference{{"NK#O3", org}}}, http.StatusBadRequest, `{"error":"Unable to write this item because it refers to items that do not exist","references":[{"NaturalKey":"NK#O3","Type":"TYPE#O"}]}`},
		{invalid("Type is %q", "x"), http.StatusBadRequest, `{"error":"Type is \"x\""}`},
		{ErrExists, http.StatusConflict, `{"error":"Unable to create this item because it exists"}`},
		{ErrNotFound, http.StatusNotFound, `{"error":"There is no such item"}`},
		{ErrBusy, http.StatusConflict, `{"error":"Others are changing this item; try again"}`},
		{errors.New("secret"), http.StatusInternalServerError, `{"error":"Internal error"}`},
	} {
		status, body := Answer(errors.Join(tt.err))
		if status != tt.status || string(body) != tt.body {
			t.Errorf("%v: %d %s\nwant %d %s", tt.err, status, body, tt.status, tt.body)
		}
	}
}
