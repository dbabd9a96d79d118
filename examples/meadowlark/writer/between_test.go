package writer

import (
	"context"
	"errors"
	"testing"

	"github.com/sluicehq/sluice/effect/dynamo"
)

// between has something happen right before the n-th transaction.
type between struct {
	*world
	n    int
	then func()
}

func (b *between) Transact(ctx context.Context, ops ...dynamo.Op) error {
	if b.n--; b.n == 0 {
		b.then()
	}
	return b.DB.Transact(ctx, ops...)
}

// Items may change between a change's read and its write.
func TestBetween(t *testing.T) {
	for _, tt := range []struct {
		name   string
		before func(t *testing.T, w *world)
		nth    int // transaction of do
		do     func(ctx context.Context, w *Writer) error
		then   func(ctx context.Context, w *world) error
		want   string
	}{
		{
			"a clean-up takes what a create would have kept",
			func(t *testing.T, w *world) { w.create(t, doc("C1"), doc("X1", "C1")); w.raw(t, doc("X1")) },
			1, func(ctx context.Context, w *Writer) error { return w.Create(ctx, doc("X1", "C1")) },
			func(ctx context.Context, w *world) error { return w.clean(ctx, "X1") },
			"C/C1 C/C1=1 C1<X1 X/X1 X1>C1",
		},
		{
			"a create keeps what a clean-up would have taken",
			func(t *testing.T, w *world) { w.create(t, doc("C1"), doc("X1", "C1")); w.raw(t, doc("X1")) },
			1, func(ctx context.Context, w *Writer) error { _, err := w.Clean(ctx, section, ID("NK#X1")); return err },
			func(ctx context.Context, w *world) error { return w.Writer.Create(ctx, doc("X1", "C1")) },
			"C/C1 C/C1=1 C1<X1 X/X1 X1>C1",
		},
		{
			"a create keeps the counts that a clean-up would have taken",
			func(t *testing.T, w *world) { w.create(t, doc("S1")); w.raw(t, doc("S1")) },
			1, func(ctx context.Context, w *Writer) error { _, err := w.Clean(ctx, school, ID("NK#O1")); return err },
			func(ctx context.Context, w *world) error { return w.Writer.Create(ctx, doc("S1")) },
			"O/O1=0 S/O1 S/O1=0",
		},
		{
			"two clean-ups",
			func(t *testing.T, w *world) { w.create(t, doc("C1"), doc("X1", "C1")); w.raw(t, doc("X1")) },
			1, func(ctx context.Context, w *Writer) error { _, err := w.Clean(ctx, section, ID("NK#X1")); return err },
			func(ctx context.Context, w *world) error { return w.clean(ctx, "X1") },
			"C/C1 C/C1=0",
		},
		{
			"another update",
			func(t *testing.T, w *world) { w.create(t, doc("C1"), doc("C2"), doc("X1", "C1")) },
			1, func(ctx context.Context, w *Writer) error { return w.Update(ctx, doc("X1", "C2")) },
			func(ctx context.Context, w *world) error { return w.Update(ctx, doc("X1")) },
			"C/C1 C/C1=0 C/C2 C/C2=1 C2<X1 X/X1 X1>C2",
		},
		{
			"another document of its name, in the same µs",
			func(t *testing.T, w *world) { w.create(t, doc("S1"), doc("C2"), doc("C1", "S1")) },
			1, func(ctx context.Context, w *Writer) error { return w.Delete(ctx, course, ID("NK#C1")) },
			func(ctx context.Context, w *world) error {
				w.now = 1_000
				return errors.Join(w.Writer.Delete(ctx, course, ID("NK#C1")), w.Writer.Create(ctx, doc("C1", "O1", "C2")))
			},
			"C/C2 C/C2=0 O/O1=0 S/O1 S/O1=0",
		},
		{
			"an update of what is deleted",
			func(t *testing.T, w *world) { w.create(t, doc("C1"), doc("X1")) },
			1, func(ctx context.Context, w *Writer) error { return w.Delete(ctx, section, ID("NK#X1")) },
			func(ctx context.Context, w *world) error { return w.Update(ctx, doc("X1", "C1")) },
			"C/C1 C/C1=0",
		},
		{
			"a count that was gone is there again",
			func(t *testing.T, w *world) {
				w.create(t, doc("C1"), doc("X1", "C1"), doc("X2", "C1"))
				w.raw(t, doc("C1"))
				if err := w.Write(t.Context(), dynamo.Delete(DefaultTable, key(course, guardPrefix+ID("NK#C1")))); err != nil {
					t.Fatal(err)
				}
			},
			2, func(ctx context.Context, w *Writer) error { return w.Delete(ctx, section, ID("NK#X1")) },
			// It begins at 0 and not at 2: who went past the writer has lost that.
			func(ctx context.Context, w *world) error { return w.Writer.Create(ctx, doc("C1")) },
			"C/C1 C/C1=-1 C1<X2 X/X2 X2>C1",
		},
		{
			"who referred to it leaves",
			func(t *testing.T, w *world) { w.create(t, doc("C1"), doc("X1", "C1")) },
			1, func(ctx context.Context, w *Writer) error { return w.Delete(ctx, course, ID("NK#C1")) },
			func(ctx context.Context, w *world) error { return w.Writer.Delete(ctx, section, ID("NK#X1")) },
			"",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			tt.before(t, w)
			w.now = 2_000
			happened := false
			b := &between{world: w, n: tt.nth, then: func() {
				happened = true
				if err := tt.then(t.Context(), w); err != nil {
					t.Errorf("in between: %v", err)
				}
			}}
			c := w.c
			c.Store = b
			if err := tt.do(t.Context(), &Writer{c: c}); err != nil {
				t.Error(err)
			}
			w.expect(t, tt.want)
			if !happened {
				t.Error("nothing happened in between")
			}
		})
	}
}

func (w *world) clean(ctx context.Context, name string) error {
	d := doc(name)
	_, err := w.Clean(ctx, d.Type, d.ID())
	return err
}
