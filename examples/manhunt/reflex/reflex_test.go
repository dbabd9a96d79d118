package reflex

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/examples/manhunt"
	"github.com/sluicehq/sluice/internal/tabletest"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/streamtest"
)

const (
	firstTimer  = `{"kind":"reflex.stage","v":1,"incidentId":"I-1","stage":1,"notBefore":"2019-12-30T20:10:00Z","dedupeKey":"I-1#1"}`
	secondTimer = `{"kind":"reflex.stage","v":1,"incidentId":"I-1","stage":2,"notBefore":"2019-12-30T20:20:00Z","dedupeKey":"I-1#2"}`
)

// town is Reflex and Manhunt at work. It is made in a bubble.
type town struct {
	*tabletest.World
	searches *manhunt.Table
	handle   sluice.Handler
	calls    []string // time and key
}

func at(clock string) time.Time {
	when, err := time.Parse(time.DateTime, "2019-12-30 "+clock)
	if err != nil {
		panic(err)
	}
	return when
}

// newTown has two people with an email each; the second method of the first
// comes after 20 minutes.
func newTown(t *testing.T) *town {
	w := &town{World: tabletest.NewWorld(at("20:00:00"))}
	w.Create("manhunt", "PK", "SK")
	w.Create("reflex", "PK", "SK")
	w.searches = manhunt.NewTable(w.World, "manhunt")
	r := router.New(manhunt.TypeFrom())
	provider := func(_ context.Context, c manhunt.Call) error {
		w.calls = append(w.calls, w.Now().Format(time.TimeOnly)+" "+c.DedupeKey+" "+c.ContactID)
		return nil
	}
	err := errors.Join(
		Register(r, Deps{Store: w.World, Send: w.Queue("reflex"), Now: w.Now}),
		manhunt.Register(r, manhunt.Deps{
			Store: w.World, Send: w.Queue("attempts"), Watch: w.Queue("watch"), Notify: w.Queue("reflex"), Now: w.Now,
			Providers: map[string]manhunt.Provider{"email": provider, "call": provider},
		}))
	if err != nil {
		t.Fatal(err)
	}
	w.handle = r.Dispatch
	for _, it := range manhunt.Fixtures()[:3] {
		w.put(t, "manhunt", it)
		w.put(t, "manhunt", streamtest.Item(strings.NewReplacer("89fa8f8", "9d657f8", "Zavier", "Alma", `"N":"1200"`, `"N":"3000"`).Replace(string(it.Raw()))))
	}
	return w
}

func (w *town) put(t *testing.T, table string, it sluice.Item) {
	t.Helper()
	if err := w.Put(t.Context(), table, it); err != nil {
		t.Fatal(err)
	}
}

func (w *town) run(t *testing.T, clock string) {
	t.Helper()
	if err := w.Run(t.Context(), w.handle, at(clock)); err != nil {
		t.Fatal(err)
	}
	if len(w.Parked) > 0 {
		t.Fatalf("parked: %v", w.Parked)
	}
}

// timers are the distinct messages of stages, and when each was first sent.
func (w *town) timers() (all []string) {
	seen := make(map[string]bool)
	for _, s := range w.Sent {
		if strings.Contains(s.Body, "reflex.stage") && !seen[s.Body] {
			seen[s.Body] = true
			all = append(all, fmt.Sprintf("%s +%v %s", s.At.Format(time.TimeOnly), s.Delay.Seconds(), s.Body))
		}
	}
	return all
}

func (w *town) incident() string {
	it := w.Items("reflex")[0]
	stage, _ := it.Lookup("stage")
	return text(it, "status") + " at " + stage.Str() + " since " + text(it, "stageStartedDatetime")
}

// found are the searches: id, contact, status.
func (w *town) found(t *testing.T) (all []string) {
	for _, contact := range []string{"89fa8f8", "9d657f8"} {
		s, _, err := w.searches.Searches(t.Context(), manhunt.SearchQuery{ContactID: contact})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range s {
			if in, _, err := w.searches.Searches(t.Context(), manhunt.SearchQuery{ContactID: contact, Status: s.Status}); err != nil || !slices.ContainsFunc(in, func(o manhunt.Search) bool { return o.ID == s.ID }) {
				t.Errorf("search %s is not indexed as %s: %v", s.ID, s.Status, err)
			}
			all = append(all, s.ID+" "+s.ContactID+" "+s.Status+" "+s.Started+" "+fmt.Sprint(s.Metadata))
		}
	}
	return all
}

func same(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s\n  %s\nwant\n  %s", what, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func search(n int, status string) string {
	return []string{
		"e923fda 89fa8f8 " + status + " 2019-12-30T20:00:00Z map[incident:I-1 stage:1]",
		"ebd7ce4 9d657f8 " + status + " 2019-12-30T20:10:00Z map[incident:I-1 stage:2]",
	}[n-1]
}

func is(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("incident is %s, want %s", got, want)
	}
}

func TestIncident(t *testing.T) {
	for _, tt := range []struct {
		answers string // the search of the contact who answers at 20:12
		ends    []string
	}{
		{"e923fda", []string{search(1, "successful"), search(2, "canceled")}},
		{"ebd7ce4", []string{search(1, "canceled"), search(2, "successful")}},
	} {
		for _, twice := range []bool{false, true} {
			t.Run(fmt.Sprint(tt.answers, " twice ", twice), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newTown(t)
					w.Twice = twice
					w.put(t, "reflex", Fixtures()[0])
					w.run(t, "20:00:00")
					same(t, "searches at 20:00", w.found(t), search(1, "active"))
					same(t, "timers at 20:00", w.timers(), "20:00:00 +600 "+firstTimer)
					w.run(t, "20:09:59")
					is(t, w.incident(), "open at 1 since 2019-12-30T20:00:00Z")
					w.run(t, "20:10:00")
					is(t, w.incident(), "open at 2 since 2019-12-30T20:10:00Z")
					same(t, "searches at 20:10", w.found(t), search(1, "active"), search(2, "active"))
					w.run(t, "20:12:00")
					if first, err := w.searches.Respond(t.Context(), tt.answers, 0, manhunt.Response{Text: "yes", By: "ada", At: at("20:11:59")}); !first || err != nil {
						t.Fatal(first, err)
					}
					w.run(t, "20:12:00")
					if it := w.Items("reflex")[0]; text(it, "acknowledgedBy") != "ada" || text(it, "acknowledgedDatetime") != "2019-12-30T20:11:59Z" {
						t.Errorf("%s", it.Raw())
					}
					is(t, w.incident(), "acknowledged at 2 since 2019-12-30T20:10:00Z")
					same(t, "searches at 20:12", w.found(t), tt.ends...)
					w.run(t, "23:00:00")
					is(t, w.incident(), "acknowledged at 2 since 2019-12-30T20:10:00Z")
					same(t, "searches", w.found(t), tt.ends...)
					same(t, "timers", w.timers(), "20:00:00 +600 "+firstTimer, "20:10:00 +600 "+secondTimer)
					same(t, "calls", w.calls, "20:00:00 e923fda#0 89fa8f8", "20:10:00 ebd7ce4#0 9d657f8")
				})
			})
		}
	}
}

func TestNobodyAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t)
		w.Twice = true
		w.put(t, "reflex", Fixtures()[0])
		w.run(t, "23:00:00")
		is(t, w.incident(), "exhausted at 2 since 2019-12-30T20:10:00Z")
		// The call of the first contact was due at 20:20:00, too.
		same(t, "searches", w.found(t), search(1, "canceled"), search(2, "canceled"))
		same(t, "timers", w.timers(), "20:00:00 +600 "+firstTimer, "20:10:00 +600 "+secondTimer)
	})
}

// Closing an incident ends its searches, also a search that opens at that moment.
func TestClosed(t *testing.T) {
	closed := streamtest.Item(strings.Replace(string(Fixtures()[0].Raw()), `"S":"open"`, `"S":"closed"`, 1))
	for _, when := range []string{"20:00:00", "20:05:00", "20:15:00"} {
		t.Run(when, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTown(t)
				w.put(t, "reflex", Fixtures()[0])
				if when != "20:00:00" {
					w.run(t, when)
				}
				w.put(t, "reflex", closed)
				w.run(t, "23:00:00")
				if it := w.Items("reflex")[0]; text(it, "status") != "closed" {
					t.Errorf("incident %s", it.Raw())
				}
				for _, s := range w.found(t) {
					if !strings.Contains(s, " canceled ") {
						t.Errorf("search %s", s)
					}
				}
				if when == "20:00:00" && (len(w.calls) > 0 || len(w.found(t)) > 0) { // closed before it was seen
					t.Errorf("calls %q, searches %q", w.calls, w.found(t))
				}
			})
		})
	}
	t.Run("between look and search", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newTown(t)
			a := &app{d: Deps{Store: &closes{World: w.World, closed: closed}, Table: "reflex", Manhunt: "manhunt", Send: w.Queue("reflex"), Now: w.Now}}
			w.put(t, "reflex", Fixtures()[0])
			rec := streamtest.Insert("reflex", Fixtures()[0])
			a.searches = manhunt.NewTable(a.d.Store, "manhunt")
			if err := a.begin(t.Context(), &rec); fmt.Sprint(err) != "skipped: incident not open" || len(w.Sent) > 0 {
				t.Errorf("%v, sent %v", err, w.Sent)
			}
			same(t, "searches", w.found(t), search(1, "canceled"))
		})
	})
}

// closes is a store in which the incident is closed once it has been read.
type closes struct {
	*tabletest.World
	closed sluice.Item
}

func (s *closes) Write(ctx context.Context, op dynamo.Op) error {
	return errors.Join(s.Put(ctx, "reflex", s.closed), s.World.Write(ctx, op))
}

// A closed incident stays closed.
func TestClosedStaysClosed(t *testing.T) {
	closed := streamtest.Item(strings.Replace(string(Fixtures()[0].Raw()), `"S":"open"`, `"S":"closed"`, 1))
	resolved := `{"kind":"manhunt.resolved","searchId":"a271244","from":"active","to":"successful"}`
	for name, body := range map[string]string{"stage": firstTimer, "last stage": secondTimer, "resolved": resolved} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTown(t)
				it := Fixtures()[0]
				if name == "last stage" {
					it = streamtest.Item(strings.Replace(string(it.Raw()), `"stage":{"N":"1"}`, `"stage":{"N":"2"}`, 1))
				}
				w.put(t, "reflex", it)
				w.put(t, "manhunt", manhunt.Fixtures()[3])
				time.Sleep(time.Hour)
				r := router.New(manhunt.TypeFrom())
				if err := Register(r, Deps{Store: &closes{World: w.World, closed: closed}, Send: w.Queue("reflex"), Now: w.Now}); err != nil {
					t.Fatal(err)
				}
				m := sluice.Message{ID: "m1", Body: body}
				if err := r.Dispatch(t.Context(), m.Record("arn:aws:sqs:eu-west-1:123456789012:reflex")); fmt.Sprint(err) != "skipped: incident has changed" {
					t.Error(err)
				}
				is(t, w.incident(), "closed at 1 since 2019-12-30T20:00:00Z")
			})
		})
	}
}

// A search that has ended is not opened again by a record that comes again.
func TestSearchIsOpenedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t)
		w.put(t, "reflex", Fixtures()[0])
		w.run(t, "20:01:00")
		if ok, err := w.searches.Cancel(t.Context(), "e923fda", manhunt.Ending{}); !ok || err != nil {
			t.Fatal(ok, err)
		}
		w.Replay(streamtest.Insert("reflex", Fixtures()[0]))
		w.run(t, "20:02:00")
		same(t, "searches", w.found(t), search(1, "canceled"))
		same(t, "timers", w.timers(), "20:00:00 +600 "+firstTimer)
		is(t, w.incident(), "open at 1 since 2019-12-30T20:00:00Z")
	})
}

// A stage that is over before its record is seen has its search, too: the
// contact of the next one joins, and takes nobody's place.
func TestTwoStagesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t)
		w.Twice = true
		w.put(t, "reflex", Fixtures()[0])
		w.put(t, "reflex", streamtest.Item(strings.NewReplacer(`"stage":{"N":"1"}`, `"stage":{"N":"2"}`, "20:00:00Z", "20:10:00Z").Replace(string(Fixtures()[0].Raw()))))
		w.run(t, "20:05:00")
		same(t, "searches", w.found(t), search(1, "active"), search(2, "active"))
		w.run(t, "20:15:00") // the first timer changes nothing
		is(t, w.incident(), "open at 2 since 2019-12-30T20:10:00Z")
		same(t, "timers", w.timers(), "20:00:00 +600 "+firstTimer, "20:00:00 +900 "+secondTimer)
	})
}

// A record of a closing that comes again when the incident is open again ends
// nothing.
func TestOpenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t)
		w.put(t, "reflex", Fixtures()[0])
		w.run(t, "20:01:00")
		closed := streamtest.Item(strings.Replace(string(Fixtures()[0].Raw()), `"S":"open"`, `"S":"closed"`, 1))
		w.Replay(streamtest.Modify("reflex", Fixtures()[0], closed))
		w.run(t, "20:02:00")
		same(t, "searches", w.found(t), search(1, "active"))
	})
}

func TestRefused(t *testing.T) {
	fixture := string(Fixtures()[0].Raw())
	for _, tt := range []struct{ name, old, new, want string }{
		{"stage beyond the last", `"stage":{"N":"1"}`, `"stage":{"N":"3"}`, "it is at stage 3 of 2"},
		{"stage 0", `"stage":{"N":"1"}`, `"stage":{"N":"0"}`, "it is at stage 0 of 2"},
		{"no time", "2019-12-30T20:00:00Z", "now", "stageStartedDatetime is no time in RFC 3339"},
		{"no contact", `"contactId":{"S":"89fa8f8"},`, "", "want a contactId"},
		{"endless", `"600"`, `"10000000000"`, "limitSeconds"},
		{"no stages", `"stages":{"L":`, `"steps":{"L":`, "at stage 1 of 0"},
		{"stages are a text", `"stage":{"N":"1"}`, `"stage":{"S":"one"}`, `cannot decode attribute "stage"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTown(t)
				it := streamtest.Item(strings.Replace(fixture, tt.old, tt.new, 1))
				w.put(t, "reflex", it)
				rec := streamtest.Insert("reflex", it)
				if err := w.handle(t.Context(), &rec); !sluice.IsPermanent(err) || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%v, want %q", err, tt.want)
				}
				if len(w.found(t)) > 0 || len(w.Sent) > 0 {
					t.Errorf("searches %q, sent %v", w.found(t), w.Sent)
				}
			})
		})
	}
}

func TestMessages(t *testing.T) {
	for _, tt := range []struct{ name, body, want string }{
		{"stage of another incident", strings.ReplaceAll(firstTimer, "I-1", "I-2"), "skipped: stage is over"},
		{"stage that is over", strings.Replace(firstTimer, `"stage":1`, `"stage":2`, 1), "skipped: stage is over"},
		{"without a stage", strings.Replace(firstTimer, `"stage":1,`, "", 1), "message of a stage: want incidentId, stage and notBefore"},
		{"canceled", `{"kind":"manhunt.resolved","searchId":"e923fda","from":"active","to":"canceled"}`, "skipped: nobody has answered"},
		{"no such search", `{"kind":"manhunt.resolved","searchId":"gone","from":"active","to":"successful"}`, "skipped: no search for an incident"},
		{"another's search", `{"kind":"manhunt.resolved","searchId":"2ad6a19","from":"active","to":"successful"}`, "skipped: no search for an incident"},
		{"its search", `{"kind":"manhunt.resolved","searchId":"a271244","from":"active","to":"successful"}`, "<nil>"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTown(t)
				w.put(t, "reflex", Fixtures()[0])
				w.put(t, "manhunt", manhunt.Fixtures()[3])
				w.put(t, "manhunt", manhunt.Fixtures()[4])
				time.Sleep(time.Hour)
				m := sluice.Message{ID: "m1", Body: tt.body}
				if err := w.handle(t.Context(), m.Record("arn:aws:sqs:eu-west-1:123456789012:reflex")); fmt.Sprint(err) != tt.want {
					t.Errorf("%v, want %s", err, tt.want)
				}
				want := "open at 1 since 2019-12-30T20:00:00Z"
				if tt.want == "<nil>" {
					want = strings.Replace(want, "open", "acknowledged", 1)
				}
				is(t, w.incident(), want)
			})
		})
	}
}

// TestSeeds draws order, repetitions, faults and answers.
func TestSeeds(t *testing.T) {
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) { drawn(t, seed) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func drawn(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 11))
	w := newTown(t)
	w.Rand = rng
	if seed%2 == 1 {
		w.Fault = func(_ bool, ops []dynamo.Op) error {
			if ops[0].Kind != dynamo.PutOp && rng.IntN(10) == 0 {
				return errors.New("throttled")
			}
			return nil
		}
	}
	w.put(t, "reflex", Fixtures()[0])
	when := at("20:00:00").Add(time.Duration(rng.IntN(1500)) * time.Second)
	w.run(t, when.Format(time.TimeOnly))
	id := []string{"e923fda", "ebd7ce4"}[rng.IntN(2)]
	wasOpen := strings.HasPrefix(w.incident(), "open")
	s, _, err := w.searches.Search(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	fault := w.Fault
	w.Fault = nil
	answered, err := w.searches.Answer(t.Context(), id, 0, "yes")
	if err != nil {
		t.Fatal(err)
	}
	w.Fault = fault
	if err := w.Run(t.Context(), w.handle, at("23:59:59").Add(24*time.Hour)); err != nil || len(w.Parked) > 0 {
		t.Fatal(err, w.Parked)
	}
	status, _, _ := strings.Cut(w.incident(), " ")
	want := "exhausted"
	if s.Status == manhunt.Active && answered && wasOpen {
		want = "acknowledged"
	}
	if status != want {
		t.Errorf("answered %v at %v, when the incident was open: %v; in the end it is %s, want %s", answered, when, wasOpen, status, want)
	}
	for _, s := range w.found(t) {
		if strings.Contains(s, " active ") || status == "acknowledged" && strings.Contains(s, "successful") != strings.HasPrefix(s, id) {
			t.Errorf("%s; searches %q", status, w.found(t))
		}
	}
	for _, timer := range w.timers() {
		if !strings.HasSuffix(timer, firstTimer) && !strings.HasSuffix(timer, secondTimer) {
			t.Errorf("timer %s", timer)
		}
	}
}
