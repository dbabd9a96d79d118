package writer

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/examples/internal/kit"
	"github.com/sluicehq/sluice/internal/tabletest"
	"github.com/sluicehq/sluice/item"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	school     = "TYPE#S"
	agency     = "TYPE#A"
	course     = "TYPE#C"
	section    = "TYPE#X" // nobody refers to one
	org        = "TYPE#O"
	descriptor = "TYPE#GradeDescriptor"
)

var resources = Resources{school: {Referenced: true, Supertype: org}, agency: {Referenced: true, Supertype: org}, course: {Referenced: true}}

// world is a table in memory and a Writer of it.
type world struct {
	tabletest.DB
	*Writer
	now int64 // µs
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{now: 1_000}
	w.DB.Create(DefaultTable, "pk", "sk")
	var err error
	w.Writer, err = New(Config{Store: &w.DB, Resources: resources, Now: func() time.Time { return time.UnixMicro(w.now) }})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// doc returns a document that refers to others. Its name is its type's letter and a
// number, such as S1.
func doc(name string, refs ...string) Document {
	d := Document{Type: typeOf(name), NaturalKey: "NK#" + name, Info: item.Of(item.String("name", name))}
	if d.Type == school || d.Type == agency {
		d.Identity = "NK#O" + name[1:]
	}
	for _, ref := range refs {
		d.References = append(d.References, reference(ref))
	}
	return d
}

// reference names a document by its own type or, as in O1, by its supertype.
func reference(name string) Reference {
	r := Reference{Type: typeOf(name), NaturalKey: "NK#" + name}
	if r.Type == school || r.Type == agency {
		r.NaturalKey = "NK#O" + name[1:]
	}
	return r
}

func typeOf(name string) string {
	if name[0] == 'G' {
		return descriptor
	}
	return "TYPE#" + name[:1]
}

// names are those of ids that tests use.
var names = map[string]string{}

func init() {
	for _, letter := range "CXOG" {
		for n := range 10 {
			name := fmt.Sprintf("%c%d", letter, n)
			names[ID("NK#"+name)] = name
		}
	}
}

// state returns the table's items, sorted, one word each: documents as TYPE/id, counts
// as TYPE/id=3, references as from>to by their FREF and from<to by their TREF.
func (w *world) state() string {
	var words []string
	for _, it := range w.Items(DefaultTable) {
		pk, sk := kit.Text(it, "pk"), kit.Text(it, "sk")
		id := names[sk[strings.LastIndex(sk, "#")+1:]]
		of := names[pk[strings.LastIndex(pk, "#")+1:]]
		typ := strings.TrimPrefix(pk, typePrefix)
		count, _ := it.Lookup("refCount")
		switch Kind(it) {
		case Entity:
			words = append(words, typ+"/"+id)
		case Guard, Assign:
			words = append(words, typ+"/"+id+"="+count.Str())
		case FRef:
			words = append(words, of+">"+id)
		case TRef:
			words = append(words, of+"<"+id)
		}
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

func (w *world) create(t *testing.T, docs ...Document) {
	t.Helper()
	for _, d := range docs {
		if err := w.Writer.Create(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
}

// raw deletes a document past the Writer.
func (w *world) raw(t *testing.T, d Document) {
	t.Helper()
	if err := w.Write(t.Context(), dynamo.Delete(DefaultTable, EntityKey(d.Type, d.ID()))); err != nil {
		t.Fatal(err)
	}
}

func (w *world) expect(t *testing.T, want string) {
	t.Helper()
	if got := w.state(); got != want {
		t.Errorf("the table holds\n%s\nwant\n%s", got, want)
	}
}
