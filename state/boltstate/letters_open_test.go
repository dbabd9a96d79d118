package boltstate

import (
	"fmt"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"
)

// BenchmarkOpenWithLetters opens a file with 64 MB of letters, few large ones or
// many small ones: what a daemon waits for before its first record.
func BenchmarkOpenWithLetters(b *testing.B) {
	for _, size := range []int{2500, 300_000} {
		b.Run(fmt.Sprint(size, "B"), func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "state.db")
			s, err := Open(path, Options{})
			if err != nil {
				b.Fatal(err)
			}
			if err := s.db.Update(func(tx *bbolt.Tx) error {
				letters, err := grow(tx, []byte("app"), lettersBucket)
				for i := range 64 << 20 / size {
					if err == nil {
						err = letters.Put(fmt.Appendf(nil, "%040d-0123456789abcdef", i), make([]byte, size))
					}
				}
				return err
			}); err != nil {
				b.Fatal(err)
			}
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				s, err := Open(path, Options{})
				if err != nil {
					b.Fatal(err)
				}
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
