package statetest

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/sluicehq/sluice/state"
)

// namedBytes are the calls of a store's letters or of its values: both store bytes under
// the name of an application and a name of their own.
type namedBytes struct {
	put    func(ctx context.Context, app, name string, data []byte) error
	get    func(ctx context.Context, app, name string) (data []byte, ok bool, err error)
	remove func(ctx context.Context, app, name string) error
	list   func(ctx context.Context, app string) ([]state.Value, error)
}

func ofLetters(run func(*testing.T, namedBytes)) func(*testing.T, state.Letters) {
	return func(t *testing.T, l state.Letters) {
		run(t, namedBytes{l.PutLetter, l.GetLetter, l.DeleteLetter, func(ctx context.Context, app string) (all []state.Value, err error) {
			letters, err := l.ListLetters(ctx, app, "", 10)
			for _, x := range letters {
				all = append(all, state.Value{Name: x.ID, Data: x.Data})
			}
			return all, err
		}})
	}
}

func ofValues(run func(*testing.T, namedBytes)) func(*testing.T, state.Values) {
	return func(t *testing.T, v state.Values) {
		run(t, namedBytes{v.PutValue, v.GetValue, v.DeleteValue, func(ctx context.Context, app string) ([]state.Value, error) {
			return v.ListValues(ctx, app, "")
		}})
	}
}

// has wants that an application has these names.
func (k namedBytes) has(t *testing.T, app string, want ...string) {
	t.Helper()
	all, err := k.list(t.Context(), app)
	var got []string
	for _, one := range all {
		got = append(got, one.Name)
	}
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("application %s has %q, %v; want %q", app, got, err, want)
	}
}

// holds wants that a name has this text.
func (k namedBytes) holds(t *testing.T, app, name, want string) {
	t.Helper()
	if data, ok, err := k.get(t.Context(), app, name); string(data) != want || !ok || err != nil {
		t.Fatalf("%s of %s is %q, %v, %v; want %q", name, app, data, ok, err, want)
	}
}

func testNamed(t *testing.T, k namedBytes) {
	absent := func(name string) {
		t.Helper()
		if data, ok, err := k.get(t.Context(), "app", name); data != nil || ok || err != nil {
			t.Fatalf("%s, which is not there, is %q, %v, %v", name, data, ok, err)
		}
	}
	absent("1")
	succeeds(t, "deletion of none", k.remove(t.Context(), "app", "1"))
	k.has(t, "app")
	for _, one := range [][2]string{{"1", "one"}, {"1", "uno"}, {"2", ""}} {
		succeeds(t, "put", k.put(t.Context(), "app", one[0], []byte(one[1])))
	}
	k.holds(t, "app", "1", "uno")
	k.holds(t, "app", "2", "")
	succeeds(t, "deletion", k.remove(t.Context(), "app", "1"))
	absent("1")
	k.has(t, "app", "2")
	if k.put(t.Context(), "", "1", nil) == nil || k.put(t.Context(), "app", "", nil) == nil {
		t.Error("without an application or a name something was stored")
	}
}

func testNamedApart(t *testing.T, k namedBytes) {
	for _, app := range []string{"a", "b"} {
		succeeds(t, "put", k.put(t.Context(), app, "n", []byte("of "+app)))
	}
	succeeds(t, "deletion", k.remove(t.Context(), "a", "n"))
	k.has(t, "a")
	k.has(t, "b", "n")
	k.holds(t, "b", "n", "of b")
}

func testNamedCopied(t *testing.T, k namedBytes) {
	want := bytes.Repeat([]byte("letter"), 2000) // more than a store keeps inline
	data := bytes.Clone(want)
	succeeds(t, "put", k.put(t.Context(), "app", "1", data))
	data[0] = 'X'
	for range 2 {
		got, _, err := k.get(t.Context(), "app", "1")
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("got %.20q, %v", got, err)
		}
		got[0] = 'Y'
		list, err := k.list(t.Context(), "app")
		if err != nil || len(list) != 1 || !bytes.Equal(list[0].Data, want) {
			t.Fatalf("listed %.20v, %v", list, err)
		}
		list[0].Data[0] = 'Z'
	}
}

func testNamedCancelled(t *testing.T, k namedBytes) {
	succeeds(t, "put", k.put(t.Context(), "app", "1", []byte("x")))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, getErr := k.get(ctx, "app", "1")
	_, listErr := k.list(ctx, "app")
	cancelled(t, map[string]error{
		"put": k.put(ctx, "app", "2", nil), "remove": k.remove(ctx, "app", "1"), "get": getErr, "list": listErr,
	})
	k.has(t, "app", "1")
}
