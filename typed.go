package sluice

import (
	"context"
	"fmt"
)

// Change is one change of an item, decoded into values of T.
type Change[T any] struct {
	Old    *T // nil when the record has no old image
	New    *T // nil when the record has no new image
	Record *Record
}

// Typed makes a Handler from a function of decoded images. `dynamodbav` tags
// control the decoding. An image that does not fit T is a [Permanent] error.
func Typed[T any](h func(ctx context.Context, c Change[T]) error) Handler {
	return func(ctx context.Context, rec *Record) error {
		c := Change[T]{Record: rec}
		if rec.Old.Exists() {
			c.Old = new(T)
			if err := rec.Old.Decode(c.Old); err != nil {
				return Permanent(fmt.Errorf("old image: %w", err))
			}
		}
		if rec.New.Exists() {
			c.New = new(T)
			if err := rec.New.Decode(c.New); err != nil {
				return Permanent(fmt.Errorf("new image: %w", err))
			}
		}
		return h(ctx, c)
	}
}
