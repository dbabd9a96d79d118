package page

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
)

var errNoGap = &Error{http.StatusNotFound, errors.New("the gap is not open: it was acknowledged, perhaps by somebody else")}

func (s *server) gaps(w http.ResponseWriter, r *http.Request) error {
	all := s.Gaps()
	p := paged(r, len(all))
	return s.live(w, "gaps", "Gaps", struct {
		Gaps []Gap
		part
	}{all[p.From:p.To], p})
}

func (s *server) gap(r *http.Request) (Gap, error) {
	all := s.Gaps()
	i := slices.IndexFunc(all, func(g Gap) bool { return g.ID == r.PathValue("id") })
	if i < 0 {
		return Gap{}, errNoGap
	}
	return all[i], nil
}

// confirmGap asks whether the loss is repaired.
func (s *server) confirmGap(w http.ResponseWriter, r *http.Request) error {
	g, err := s.gap(r)
	if err != nil {
		return err
	}
	return show(w, http.StatusOK, "gap", s.frame("Acknowledge a gap", "gaps", g))
}

func (s *server) acknowledge(w http.ResponseWriter, r *http.Request) error {
	g, err := s.gap(r)
	if err != nil {
		return err
	}
	if err := s.Acknowledge(r.Context(), []string{g.ID}); err != nil {
		return fmt.Errorf("the gap is still open: %w", err)
	}
	http.Redirect(w, r, "/page/gaps", http.StatusSeeOther)
	return nil
}
