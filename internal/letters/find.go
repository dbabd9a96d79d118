package letters

import (
	"context"
	"fmt"
	"strings"

	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/state"
)

const (
	shortID     = 8 // characters
	leastPrefix = 4
	mostAlike   = 5 // ids that an error names
)

// ShortID is the beginning of what tells letters apart in an id: eight characters
// behind the place of the change in its stream. [Box.Find] takes it, and more or
// fewer of those characters, for the id.
func ShortID(id string) string { return tail(id)[:min(shortID, len(tail(id)))] }

// tail is the end of an id, which is a hash.
func tail(id string) string { return id[strings.LastIndexByte(id, '-')+1:] }

// HasPrefix reports whether an id, or the end of it that tells letters apart,
// begins so.
func HasPrefix(id, prefix string) bool {
	return strings.HasPrefix(id, prefix) || strings.HasPrefix(tail(id), prefix)
}

// AmbiguousError says that several letters have ids that begin so.
type AmbiguousError struct {
	Prefix string
	IDs    []string // some of them
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("several dead letters begin with %s: say more of it: %s", e.Prefix, strings.Join(e.IDs, ", "))
}

// Box is a dead-letter box whose letters people name by the beginning of an id.
type Box struct {
	*deadletter.Box
	store state.Letters
}

// NewBox returns a [deadletter.NewBox].
func NewBox(store state.Letters, app string) *Box {
	return &Box{deadletter.NewBox(store, app), store}
}

// heads is a store that lists the beginnings of letters.
type heads interface {
	ListLetterHeads(ctx context.Context, app, after string, limit, bytes int) ([]state.Letter, error)
}

const headPage = 1000

// Find returns the id of the letter that has this id, or of the only one whose id
// [HasPrefix] of at least four characters. The error is [deadletter.ErrNotFound] or an
// [*AmbiguousError].
func (b *Box) Find(ctx context.Context, prefix string) (string, error) {
	if _, ok, err := b.store.GetLetter(ctx, b.Application(), prefix); ok || err != nil {
		return prefix, err
	}
	if len(prefix) < leastPrefix {
		return "", fmt.Errorf("%w: %s; the beginning of an id has at least %d characters", deadletter.ErrNotFound, prefix, leastPrefix)
	}
	list := b.store.ListLetters
	if h, ok := b.store.(heads); ok {
		list = func(ctx context.Context, app, after string, limit int) ([]state.Letter, error) {
			return h.ListLetterHeads(ctx, app, after, limit, 1)
		}
	}
	var alike []string
	for after := ""; ; {
		letters, err := list(ctx, b.Application(), after, headPage)
		if err != nil {
			return "", err
		}
		for _, l := range letters {
			if after = l.ID; HasPrefix(l.ID, prefix) {
				alike = append(alike, l.ID)
			}
		}
		switch {
		case len(alike) > 1 && (len(alike) >= mostAlike || len(letters) == 0):
			return "", &AmbiguousError{prefix, alike[:min(len(alike), mostAlike)]}
		case len(letters) > 0:
		case len(alike) == 1:
			return alike[0], nil
		default:
			return "", fmt.Errorf("%w: %s", deadletter.ErrNotFound, prefix)
		}
	}
}
