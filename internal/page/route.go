package page

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
)

// Throttle is what an operator has decided for a route.
type Throttle struct {
	Paused      bool    `json:"paused,omitempty"`
	Concurrency int     `json:"concurrency,omitempty"` // calls at a time of each worker, while the route is slowed
	Rate        float64 `json:"rate,omitempty"`        // records a second of each worker, while the route is slowed
	LeftSeconds float64 `json:"leftSeconds,omitempty"` // until the route goes on by itself
	Text        string  `json:"text"`                  // all of it in words
}

// route is the page of one route. It asks for what an operator decides.
func (s *server) route(w http.ResponseWriter, r *http.Request) error {
	name := r.URL.Query().Get("route")
	all := s.Status().Routes
	i := slices.IndexFunc(all, func(r Route) bool { return r.Route == name })
	if i < 0 {
		return &Error{http.StatusNotFound, fmt.Errorf("there is no route %q", name)}
	}
	return show(w, http.StatusOK, "route", s.frame("Route "+name, "overview", all[i]))
}

// throttle answers the forms of the page of a route: pause, slow and resume.
func (s *server) throttle(w http.ResponseWriter, r *http.Request) error {
	form, names := url.Values{}, []string{"route", "for"}
	if r.PathValue("action") == "slow" {
		names = append(names, "concurrency", "rate")
	}
	for _, name := range names {
		if value := r.PostForm.Get(name); value != "" {
			form.Set(name, value)
		}
	}
	switch warning, err := s.Throttle(r.Context(), r.PathValue("action"), form); {
	case err != nil:
		return err
	case warning != "":
		return show(w, http.StatusOK, "throttled", s.frame("Stored", "overview", warning))
	}
	http.Redirect(w, r, "/page/route?route="+url.QueryEscape(r.PostForm.Get("route")), http.StatusSeeOther)
	return nil
}
