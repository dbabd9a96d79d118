package page

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/letters"
)

const (
	letterPage = 50               // rows: each has a box, whose ids a form sends
	explainFor = 3 * time.Second  // what a route would do may be asked of tables
	rawLimit   = "?payload=1"     // the whole letter, as JSON
	filterMost = 10 * time.Minute // a redrive by filter, at most
	listFor    = 20 * time.Second // a search that finds nothing reads all letters
)

// search is the form of a filter, as it was filled in, without empty fields.
type search struct{ url.Values }

// filterOf reads the form of a filter. An empty field is no filter.
func filterOf(form url.Values) (deadletter.Filter, search, error) {
	q := url.Values{}
	for _, name := range []string{"kind", "route", "table", "error", "since"} {
		if v := strings.TrimSpace(form.Get(name)); v != "" {
			q.Set(name, v)
		}
	}
	for key := range strings.SplitSeq(form.Get("key"), " & ") {
		if key = strings.TrimSpace(key); key != "" {
			q.Add("key", key)
		}
	}
	f, err := letters.ParseFilter(q, time.Now())
	if err != nil {
		err = &Error{http.StatusBadRequest, err}
	}
	if keys := q["key"]; len(keys) > 0 {
		q.Set("key", strings.Join(keys, " & "))
	}
	return f, search{q}, err
}

// letters lists dead letters.
func (s *server) letters(w http.ResponseWriter, r *http.Request) error {
	f, form, err := filterOf(r.URL.Query())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), listFor)
	defer cancel()
	after := r.URL.Query().Get("after")
	list, err := s.List(ctx, f, after, letterPage)
	if err != nil {
		return err
	}
	first, next := "", ""
	if after != "" {
		first = "/page/letters?" + form.Encode()
	}
	if list.Next != "" {
		q := maps.Clone(form.Values)
		q.Set("after", list.Next)
		next = "/page/letters?" + q.Encode()
	}
	return show(w, http.StatusOK, "letters", s.frame("Dead letters", "letters", struct {
		LetterList
		Search      search
		Filtered    bool
		First, Next string
		Counts      []deadletter.Count
	}{list, form, !letters.ChoosesAll(f), first, next, s.Status().DeadLetters}))
}

// letter shows one dead letter.
func (s *server) letter(w http.ResponseWriter, r *http.Request) error {
	e, err := s.Show(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	body := struct {
		letters.Outline
		Keys       string
		Attributes []attribute
		More       int    // attributes that are left out
		Text       string // a record without images: a message, or an unreadable record
		Cut        bool
		Raw        string
		Explained  []Explained
	}{Outline: letters.OutlineOf(&e, true), Raw: "/deadletters/" + url.PathEscape(e.ID) + rawLimit}
	body.Keys = cut(mostValue, string(body.Outline.Keys))
	rec := e.Record()
	body.Attributes, body.More = images(rec)
	if len(body.Attributes) == 0 {
		body.Text, body.Cut = cut(mostValue, strings.ToValidUTF8(string(e.Raw), "�")), len(e.Raw) > mostValue
	}
	ctx, cancel := context.WithTimeout(r.Context(), explainFor)
	defer cancel()
	if e.Gap == nil && e.Ref == nil && rec.Err() == nil {
		body.Explained = s.Explain(ctx, rec)
	}
	return show(w, http.StatusOK, "letter", s.frame("Dead letter "+letters.ShortID(e.ID), "letters", body))
}
