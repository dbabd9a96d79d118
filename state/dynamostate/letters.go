package dynamostate

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sluicehq/sluice/internal/rows"
	"github.com/sluicehq/sluice/internal/staterules"
	"github.com/sluicehq/sluice/state"
)

// An item has at most 400 KB
// (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html#limits-items),
// and a letter may be larger. A small letter is one row. A larger one has a row
// that names its parts, and a row for each part. The first row also names parts
// that are being written or deleted: after a crash, the next write or deletion of
// the letter finds them. A writer whose parts are named no more as being written
// begins again: another one has replaced or deleted the letter.
const (
	maxInline = 16 << 10
	maxPart   = 256 << 10
	headBytes = 4 << 10 // of a letter in parts, for ListLetterHeads
)

type storedLetter struct {
	Label   []byte   `dynamodbav:"label"`
	Data    []byte   `dynamodbav:"data"`    // the letter, or the first bytes of one in parts
	Parts   string   `dynamodbav:"parts"`   // prefix of the parts' names; empty for a letter in one row
	Count   int      `dynamodbav:"count"`   // of the parts
	Missing bool     `dynamodbav:"missing"` // the letter is deleted, or not written yet
	Writing []string `dynamodbav:"writing"` // prefixes of parts that are being written
	Leave   []string `dynamodbav:"leave"`   // prefixes of parts to delete
}

type storedPart struct {
	Data []byte `dynamodbav:"data"`
}

func letterKey(app, id string) rows.Key { return rows.Key{Partition: lettersOf(app), Sort: id} }

// PutLetter implements [state.Letters].
func (s *Store) PutLetter(ctx context.Context, app, id string, data []byte) error {
	return s.PutLabelled(ctx, app, id, data, nil)
}

// PutLabelled implements [state.Labels].
func (s *Store) PutLabelled(ctx context.Context, app, id string, data, label []byte) error {
	if err := errors.Join(ctx.Err(), staterules.Letter(app, id)); err != nil {
		return err
	}
	if err := s.note(ctx, app); err != nil {
		return err
	}
	if len(data) <= maxInline {
		return s.changeLetter(ctx, app, id, func(row rows.Row, have storedLetter) error {
			return s.settle(ctx, app, row, storedLetter{Label: label, Data: data, Leave: have.unused("")})
		})
	}
	next := storedLetter{Label: label, Data: data[:headBytes], Count: (len(data) + maxPart - 1) / maxPart}
	var failed []string // parts of this call that another writer has deleted, though maybe not all
	return s.changeLetter(ctx, app, id, func(row rows.Row, have storedLetter) error {
		if !slices.Contains(have.Writing, next.Parts) {
			if next.Parts != "" {
				failed = append(failed, next.Parts)
			}
			next.Parts = rand.Text()
			have.Missing = have.Missing || !row.Exists()
			have.Leave = append(have.Leave, failed...)
			have.Writing = append(have.Writing, next.Parts)
			var err error
			if row, err = s.rows.Write(ctx, row, encode(have)); err != nil {
				next.Parts = ""
				return err
			}
			i := 0
			for part := range slices.Chunk(data, maxPart) {
				k := rows.Key{Partition: partsOf(app, id), Sort: partName(next.Parts, i)}
				if _, err := s.rows.Write(ctx, rows.Row{Key: k}, encode(storedPart{part})); err != nil {
					return err
				}
				i++
			}
		}
		next.Leave = have.unused(next.Parts)
		return s.settle(ctx, app, row, next)
	})
}

// unused returns the prefixes of all parts but those of the letter that takes its
// place.
func (l storedLetter) unused(but string) []string {
	all := slices.Concat(l.Leave, l.Writing)
	if l.Parts != "" {
		all = append(all, l.Parts)
	}
	return slices.DeleteFunc(all, func(parts string) bool { return parts == but })
}

func partName(parts string, i int) string { return fmt.Sprintf("%s#%06d", parts, i) }

// settle writes a letter's row, and then clears up. Another writer may clear up as
// well.
func (s *Store) settle(ctx context.Context, app string, row rows.Row, next storedLetter) error {
	row, err := s.rows.Write(ctx, row, encode(next))
	if err != nil || len(next.Leave) == 0 && !next.Missing {
		return err
	}
	return unlessChanged(s.clear(ctx, app, row, next))
}

// clear deletes the parts that a letter leaves, and notes that they are deleted.
func (s *Store) clear(ctx context.Context, app string, row rows.Row, next storedLetter) error {
	for part, err := range s.rows.List(ctx, partsOf(app, row.Sort), "", 0) {
		if err != nil {
			return err
		}
		if prefix, _, _ := strings.Cut(part.Sort, "#"); slices.Contains(next.Leave, prefix) {
			if err := s.rows.Delete(ctx, part); err != nil {
				return err
			}
		}
	}
	if next.Missing {
		return s.rows.Delete(ctx, row)
	}
	next.Leave = nil
	_, err := s.rows.Write(ctx, row, encode(next))
	return err
}

// changeLetter repeats change with a letter's row and what it holds, as long as
// another writer comes between.
func (s *Store) changeLetter(ctx context.Context, app, id string, change func(rows.Row, storedLetter) error) error {
	for {
		row, have, err := fetch[storedLetter](ctx, s.rows, letterKey(app, id))
		if err != nil {
			return err
		}
		err = change(row, have)
		if _, ok := errors.AsType[*rows.ChangedError](err); !ok { // else of its row, or of a part's
			return err
		}
	}
}

// GetLetter implements [state.Letters].
func (s *Store) GetLetter(ctx context.Context, app, id string) ([]byte, bool, error) {
	if err := errors.Join(ctx.Err(), staterules.Letter(app, id)); err != nil {
		return nil, false, err
	}
	row, err := s.rows.Get(ctx, letterKey(app, id))
	if err != nil {
		return nil, false, err
	}
	return s.read(ctx, app, row)
}

// read returns the letter of a row. If its parts are replaced meanwhile, it reads
// the row anew.
func (s *Store) read(ctx context.Context, app string, row rows.Row) ([]byte, bool, error) {
	for {
		l, err := decode[storedLetter](row)
		if err != nil || !row.Exists() || l.Missing {
			return nil, false, err
		}
		if l.Parts == "" {
			return l.Data, true, nil
		}
		data, n := []byte(nil), 0
		for part, err := range s.rows.List(ctx, partsOf(app, row.Sort), l.Parts, 0) {
			if err != nil {
				return nil, false, err
			}
			if part.Sort != partName(l.Parts, n) {
				break
			}
			p, err := decode[storedPart](part)
			if err != nil {
				return nil, false, err
			}
			data = append(data, p.Data...)
			n++
		}
		if n == l.Count {
			return data, true, nil
		}
		now, err := s.rows.Get(ctx, row.Key)
		if err != nil {
			return nil, false, err
		}
		if now.Token == row.Token {
			return nil, false, fmt.Errorf("dead letter %s has %d of %d parts in the state table", row.Sort, n, l.Count)
		}
		row = now
	}
}

// ListLetters implements [state.Letters].
func (s *Store) ListLetters(ctx context.Context, app, after string, limit int) ([]state.Letter, error) {
	return s.list(ctx, app, after, limit, func(row rows.Row, _ storedLetter) ([]byte, bool, error) { return s.read(ctx, app, row) })
}

// ListLabels implements [state.Labels].
func (s *Store) ListLabels(ctx context.Context, app, after string, limit int) ([]state.Letter, error) {
	return s.list(ctx, app, after, limit, func(_ rows.Row, l storedLetter) ([]byte, bool, error) { return l.Label, true, nil })
}

// ListLetterHeads is ListLetters with at most the first most bytes of each letter, of a
// large letter at most 4 KB. It reads no parts.
func (s *Store) ListLetterHeads(ctx context.Context, app, after string, limit, most int) ([]state.Letter, error) {
	return s.list(ctx, app, after, limit, func(_ rows.Row, l storedLetter) ([]byte, bool, error) {
		return l.Data[:min(most, len(l.Data))], true, nil
	})
}

// list calls of for each letter after an id, and returns its results. Letters without
// a result do not count.
func (s *Store) list(ctx context.Context, app, after string, limit int, of func(rows.Row, storedLetter) ([]byte, bool, error)) (all []state.Letter, err error) {
	err = s.eachLetter(ctx, app, after, limit, func(row rows.Row, l storedLetter) (bool, error) {
		data, ok, err := of(row, l)
		if ok {
			all = append(all, state.Letter{ID: row.Sort, Data: data})
		}
		return ok, err
	})
	return all, err
}

// eachLetter calls do with the letters after an id, until it has returned true
// limit times.
func (s *Store) eachLetter(ctx context.Context, app, after string, limit int, do func(rows.Row, storedLetter) (bool, error)) error {
	if err := errors.Join(ctx.Err(), staterules.Letter(app, "any")); err != nil || limit <= 0 {
		return err
	}
	for l, err := range list[storedLetter](ctx, s.rows, lettersOf(app), after, min(limit, 1000)) {
		if err != nil {
			return err
		}
		if l.v.Missing {
			continue
		}
		counted, err := do(l.row, l.v)
		if err != nil {
			return err
		}
		if counted {
			if limit--; limit == 0 {
				return nil
			}
		}
	}
	return nil
}

// LabelLetters implements [state.Labels].
func (s *Store) LabelLetters(ctx context.Context, app string, label func(id string, data []byte) []byte) error {
	return s.eachLetter(ctx, app, "", 1<<62, func(row rows.Row, l storedLetter) (bool, error) {
		if len(l.Label) > 0 {
			return true, nil
		}
		data, ok, err := s.read(ctx, app, row)
		if err != nil || !ok {
			return false, err
		}
		l.Label = label(row.Sort, data)
		if len(l.Label) == 0 {
			return true, nil
		}
		_, err = s.rows.Write(ctx, row, encode(struct {
			Label []byte `dynamodbav:"label"`
		}{l.Label}))
		return true, unlessChanged(err) // whoever wrote it has labelled it, or the next call does
	})
}

// DeleteLetter implements [state.Letters].
func (s *Store) DeleteLetter(ctx context.Context, app, id string) error {
	if err := errors.Join(ctx.Err(), staterules.Letter(app, id)); err != nil {
		return err
	}
	return s.changeLetter(ctx, app, id, func(row rows.Row, have storedLetter) error {
		if leave := have.unused(""); len(leave) > 0 {
			return s.settle(ctx, app, row, storedLetter{Missing: true, Leave: leave})
		}
		return s.rows.Delete(ctx, row)
	})
}
