package page

import (
	"cmp"
	"encoding/json"
	"net/http"

	"github.com/sluicehq/sluice/internal/holders"
)

// api adds the JSON API. docs/operations.md lists it.
func (s *server) api(get func(string, func(http.ResponseWriter, *http.Request) error)) {
	of := func(path string, what func(*http.Request) (any, error)) {
		get("/api/"+path, func(w http.ResponseWriter, r *http.Request) error {
			v, err := what(r)
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return nil
			}
			secure(w)
			WriteJSON(w, v)
			return nil
		})
	}
	of("status", func(*http.Request) (any, error) {
		st := s.Status()
		st.Tables = worstOf(s.Tables(), worst)
		return st, nil
	})
	of("shards", func(*http.Request) (any, error) {
		all := []Shard{}
		for _, t := range s.Tables() {
			for _, one := range descent(t.Shards) {
				all = append(all, one.Shard)
			}
		}
		return map[string][]Shard{"shards": all}, nil
	})
	of("held", func(*http.Request) (any, error) {
		h := s.Held(true)
		return HeldItems{notNil(h.Held), notNil(h.Unlisted)}, nil
	})
	of("gaps", func(*http.Request) (any, error) { return map[string][]Gap{"gaps": notNil(s.Gaps())}, nil })
	of("workers", func(r *http.Request) (any, error) {
		all, err := s.Workers(r.Context())
		states := []worker{}
		for _, w := range all {
			states = append(states, workerOf(w))
		}
		return map[string][]worker{"workers": states}, err
	})
	of("settings", func(*http.Request) (any, error) { return s.Settings(), nil })
}

// WriteJSON answers with v, in lines that people can read.
func WriteJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	_ = e.Encode(v) // an error is the client's
}

func notNil[T any](all []T) []T {
	if all == nil {
		return []T{}
	}
	return all
}

// worker is a worker of a fleet.
type worker struct {
	Name   string          `json:"name"`
	State  holders.State   `json:"state"`
	Config string          `json:"config,omitempty"` // fingerprint
	Shards int             `json:"shards"`
	Jobs   []string        `json:"jobs,omitempty"`
	Ended  string          `json:"ended,omitempty"`
	Report *holders.Report `json:"report,omitempty"` // of the last seconds, of a living worker
}

func workerOf(w holders.Worker) worker {
	return worker{Name: w.Name, State: w.State, Config: w.Config, Shards: len(w.Shards), Jobs: w.Jobs, Ended: stamp(w.Ended), Report: w.Report}
}

// worstOf leaves each table the n shards that lag most.
func worstOf(tables []Table, n int) []Table {
	for i := range tables {
		tables[i].Shards = worstShards(tables[i].Shards, n)
	}
	return notNil(tables)
}

// workers shows the workers of the fleet. The living and the holders of shards come first.
func (s *server) workers(w http.ResponseWriter, r *http.Request) error {
	all, err := s.Workers(r.Context())
	if err != nil {
		return err
	}
	var body struct {
		Me      string
		Config  string
		Workers []worker
		Ended   []worker
		Differ  string
	}
	st := s.Status()
	body.Me, body.Config = st.Worker, st.Config
	if len(holders.Others(all, st.Config)) > 0 {
		body.Differ = holders.Differ
	}
	for _, one := range all {
		if one.State == holders.Fenced && len(one.Shards) == 0 {
			body.Ended = append(body.Ended, workerOf(one))
			continue
		}
		body.Workers = append(body.Workers, workerOf(one))
	}
	return s.live(w, "workers", "Workers", body)
}

// settings shows the configuration in force.
func (s *server) settings(w http.ResponseWriter, _ *http.Request) error {
	st := s.Status()
	return show(w, http.StatusOK, "settings", s.frame("Configuration", "settings", struct {
		Settings
		Version, Config string
	}{s.Settings(), cmp.Or(st.Version, "unknown"), st.Config}))
}
