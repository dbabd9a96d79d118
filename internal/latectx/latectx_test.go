package latectx

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "kept"))
		late, end := After(ctx, time.Minute)
		defer end()
		time.Sleep(time.Hour)
		if late.Err() != nil || late.Value(key{}) != "kept" {
			t.Errorf("%v, %v, before the other has ended", late.Err(), late.Value(key{}))
		}
		cancel()
		time.Sleep(time.Minute - time.Nanosecond)
		synctest.Wait()
		if late.Err() != nil {
			t.Error("it ended too early")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if late.Err() == nil {
			t.Error("it did not end")
		}
	})
}

// What is ended by hand leaves no timer, whichever came first.
func TestEnd(t *testing.T) {
	for _, first := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			late, end := After(ctx, time.Hour)
			if first {
				cancel()
				synctest.Wait()
			}
			end()
			cancel()
			if late.Err() == nil {
				t.Error("it goes on")
			}
		})
	}
}
