package letters

import (
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/recordtest"
)

func TestFilter(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	rec := recordtest.New(recordtest.Spec{Keys: `{"pk":{"S":"a=b"},"n":{"N":"7"},"b":{"B":"AQI="}}`})
	e, g, byRef := parked(t, &rec), parkedGap(t), byReference(t)
	e.ParkedAt = at
	for _, tt := range []struct {
		query string
		e     *deadletter.Entry
		want  bool
	}{
		{"", &e, true},
		{"", &g, true},
		{"kind=record", &e, true},
		{"kind=record", &g, false},
		{"kind=gap", &g, true},
		{"kind=gap", &e, false},
		{"route=r", &e, true},
		{"route=s", &e, false},
		{"route=r", &g, false},
		{"table=test", &e, true},
		{"table=tes", &e, false},
		{"key=pk%3Da%3Db", &e, true},
		{"key=pk%3Da", &e, false},
		{"key=n%3D7&key=pk%3Da%3Db&key=b%3DAQI%3D", &e, true},
		{"key=n%3D8&key=pk%3Da%3Db", &e, false},
		{"key=other%3Da%3Db", &e, false},
		{"key=pk%3Da", &byRef, true},
		{"key=pk%3Da", &g, false},
		{"error=FIRST+%3C", &e, true},
		{"error=nothing", &e, false},
		{"error=trimmed", &g, true},
		{"since=2026-03-01T12:00:00Z", &e, true},
		{"since=2026-03-01T12:00:01Z", &e, false},
		{"until=2026-03-01T12:00:00Z", &e, false},
		{"until=2026-03-01T12:00:01Z", &e, true},
		{"since=30m", &e, true},
		{"since=10m", &e, false},
	} {
		q, err := url.ParseQuery(tt.query)
		if err != nil {
			t.Fatal(err)
		}
		f, err := ParseFilter(q, at.Add(20*time.Minute))
		if err != nil || f.Matches(tt.e) != tt.want {
			t.Errorf("%s of %s: %v, %v; want %v", tt.query, tt.e.ID, f.Matches(tt.e), err, tt.want)
		}
		if again, err := ParseFilter(Query(f), at); err != nil || !reflect.DeepEqual(again, f) || ChoosesAll(f) != (tt.query == "") {
			t.Errorf("%s becomes %+v, %v, zero %v", tt.query, again, err, ChoosesAll(f))
		}
	}
	_, err := ParseFilter(url.Values{"key": {"pk"}, "kind": {"x"}, "since": {"yesterday"}, "route": {""}, "table": {"a", "b"}}, at)
	for _, want := range []string{`kind: "x"`, `key: "pk"`, `since: "yesterday"`, "route: it is empty", "table: it is there 2 times"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
}
