package dynamostate

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/internal/rows"
)

// slow is a table whose writes take a while.
type slow struct{ *memory }

func (s slow) Write(ctx context.Context, seen rows.Row, set map[string]types.AttributeValue) (rows.Row, error) {
	time.Sleep(10 * time.Millisecond)
	return s.memory.Write(ctx, seen, set)
}

// Two workers park the same record, while a third deletes it: everybody ends, a
// letter is one of the two or none, and no part is left in the end.
func TestLetterOfTwoWriters(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	for shift := range 30 {
		synctest.Test(t, func(t *testing.T) {
			table := new(memory)
			s := over(slow{table})
			letter := func(worker int) string { return strings.Repeat(fmt.Sprint(worker), 5*maxPart) }
			var wg sync.WaitGroup
			for worker := range 2 {
				wg.Go(func() {
					time.Sleep(time.Duration(worker*shift) * 3 * time.Millisecond)
					if err := s.PutLetter(t.Context(), "app", "id", []byte(letter(worker))); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Go(func() {
				time.Sleep(time.Duration(shift) * 5 * time.Millisecond)
				if err := s.DeleteLetter(t.Context(), "app", "id"); err != nil {
					t.Error(err)
				}
			})
			wg.Go(func() {
				time.Sleep(time.Duration(shift) * 4 * time.Millisecond)
				data, ok, err := s.GetLetter(t.Context(), "app", "id")
				if err != nil || ok && string(data) != letter(0) && string(data) != letter(1) {
					t.Errorf("read %d bytes, %v, %v", len(data), ok, err)
				}
			})
			before := time.Now()
			wg.Wait()
			if took := time.Since(before); took > 5*time.Second {
				t.Errorf("it took %v", took)
			}
			data, ok, err := s.GetLetter(t.Context(), "app", "id")
			if err != nil || ok && string(data) != letter(0) && string(data) != letter(1) {
				t.Fatalf("in the end %d bytes, %v, %v", len(data), ok, err)
			}
			for range 2 { // the first may find what the writers have left
				if err := s.PutLetter(t.Context(), "app", "id", []byte("small")); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.DeleteLetter(t.Context(), "app", "id"); err != nil {
				t.Fatal(err)
			}
			if n := table.Len(); n != 1 {
				t.Fatalf("%d rows are left, want the application's alone", n)
			}
		})
	}
}

// A label that is found for a letter does not overwrite a newer letter.
func TestLabelBesideAReplacement(t *testing.T) {
	s := over(new(memory))
	if err := s.PutLetter(t.Context(), "app", "id", []byte("old")); err != nil {
		t.Fatal(err)
	}
	err := s.LabelLetters(t.Context(), "app", func(string, []byte) []byte {
		if err := s.PutLabelled(t.Context(), "app", "id", []byte("new"), []byte("label of the new")); err != nil {
			t.Fatal(err)
		}
		return []byte("label of the old")
	})
	labels, listErr := s.ListLabels(t.Context(), "app", "", 10)
	if err != nil || listErr != nil || len(labels) != 1 || string(labels[0].Data) != "label of the new" {
		t.Errorf("labels %q, %v, %v", labels, err, listErr)
	}
}
