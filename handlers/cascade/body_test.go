package cascade

import (
	"slices"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
)

// keys makes a Cascade whose parents have a key of two attributes, and children
// the second.
func keysCascade(t *testing.T) (*world, *Cascade) {
	w := newWorld()
	w.table("parents", "a", "b")
	w.table("children", "b", "id")
	c := w.config()
	c.Table, c.Key = "parents", []string{"a", "b"}
	c.Children[0] = Child{Table: "children", Key: []string{"b", "id"}, Partition: Attr{Name: "b", From: "b"}}
	return w, must(t, c)
}

func TestNumbersAndBinaryInMessages(t *testing.T) {
	for _, tt := range []struct{ key, body string }{
		{`{"a":{"N":"7"},"b":{"B":"+/8="}}`, `{"kind":"cascade.delete","table":"children","key":{"b":{"B":"+/8="}},"parent":{"table":"parents","key":{"a":{"N":"7"},"b":{"B":"+/8="}}},"dedupeKey":"parents/7/+%2F8="}`},
		{`{"a":{"B":"\/\/8="},"b":{"N":"-1.5"}}`, `{"kind":"cascade.delete","table":"children","key":{"b":{"N":"-1.5"}},"parent":{"table":"parents","key":{"a":{"B":"//8="},"b":{"N":"-1.5"}}},"dedupeKey":"parents/%2F%2F8=/-1.5"}`},
		{`{"a":{"S":"{\"N\":\"7\"}"},"b":{"S":"x/y#z%\u0022é<\n"}}`, `{"kind":"cascade.delete","table":"children","key":{"b":"x/y#z%\"é<\u000a"},"parent":{"table":"parents","key":{"a":"{\"N\":\"7\"}","b":"x/y#z%\"é<\u000a"}},"dedupeKey":"parents/{\"N\":\"7\"}/x%2Fy%23z%25\"é<\u000a"}`},
	} {
		w, c := keysCascade(t)
		if err := c.Remove(t.Context(), removed("parents", tt.key, "")); err != nil {
			t.Fatal(err)
		}
		m := w.queue[0].m
		if m.Body != tt.body {
			t.Errorf("%s\nwant %s", m.Body, tt.body)
		}
		// It comes back as the same key: that child goes, and no other.
		b, _ := parse(tt.key).Lookup("b")
		other := item.String("b", "other")
		if b.Kind() == item.N {
			other = item.Number("b", "15")
		}
		children := w.tables["children"]
		mine := item.Of(attribute(parse(tt.key), "b"), item.String("id", "1"))
		children.put(string(mine.Raw()), string(item.Of(other, item.String("id", "1")).Raw()))
		w.tables["parents"].put(`{"a":{"S":"x"},"b":{"S":"other"}}`)
		if err := c.Work(t.Context(), record(m)); err != nil {
			t.Fatal(err)
		}
		if got := children.keys(); len(got) != 1 || got[0] == string(mine.Raw()) {
			t.Errorf("%s: %q are left", tt.key, got)
		}
		if last := w.queue[len(w.queue)-1].m.Body; !strings.HasSuffix(last, `#sweep","sweep":true}`) {
			t.Error(last)
		}
	}
}

// Two keys never make one dedupeKey, and a sweep's is never another's.
func TestDedupeKeysDiffer(t *testing.T) {
	texts := []string{"a", "a/b", "b", "a#b", "a%2Fb", "%2F", "/", "#", "#sweep", "a#sweep", "%23sweep", "%"}
	seen := make(map[string]string)
	for _, name := range []string{"", "x", "a#sweep", "x#sweep"} {
		for _, a := range texts {
			for _, b := range texts {
				for _, sweep := range []bool{false, true} {
					_, c := keysCascade(t)
					target := &target{c: c, child: &Child{Name: name}, parent: item.Of(item.String("a", a), item.String("b", b)), sweep: sweep}
					k, what := target.dedupeKey(), strings.Join([]string{name, a, b, map[bool]string{true: "sweep"}[sweep]}, "|")
					if seen[k] != "" {
						t.Errorf("%q is of %s and of %s", k, seen[k], what)
					}
					seen[k] = what
				}
			}
		}
	}
}

func TestMessagesThatAreRefused(t *testing.T) {
	change := func(old, new string) string {
		if !strings.Contains(body, old) {
			t.Fatal(old)
		}
		return strings.Replace(body, old, new, 1)
	}
	for _, tt := range []struct{ body, want string }{
		{`{"kind":"cascade.delete"}`, "parent.table is missing"},
		{change(`"table":"maps"`, `"table":"users"`), `no Cascade of this worker is of table "users"`},
		{change(`"table":"points"`, `"table":"maps"`), `it is about table maps; the children of table maps that it names are in table points`},
		{change(`"table":"points",`, ``), `table is missing`},
		{change(`"key":{"map_id":"m-1"},`, ``), `key is missing`},
		{change(`"key":{"map_id":"m-1"}`, `"key":"m-1"`), `key is missing or no object`},
		{change(`{"map_id":"m-1"}`, `{}`), `key has 0 attributes`},
		{change(`{"map_id":"m-1"}`, `{"map_id":"m-1","point_id":{"begins_with":"a"}}`), `key has 2 attributes; want ["map_id"]`},
		{change(`{"map_id":"m-1"}`, `{"map_id":""}`), `key.map_id is missing, or neither`},
		{change(`{"map_id":"m-1"}`, `{"map_id":7}`), `key.map_id is missing, or neither`},
		{change(`{"map_id":"m-1"}`, `{"map_id":{"N":"seven"}}`), `key: `},
		{change(`{"map_id":"m-1"}`, `{"map_id":{"B":"?"}}`), `key: `},
		{change(`{"map_id":"m-1"}`, `{"map_id":{"S":"m-1"}}`), `key.map_id is missing, or neither`},
		{change(`{"map_id":"m-1"}`, `{"map_id":{"N":"1","B":""}}`), `key.map_id is missing, or neither`},
		{change(`"key":{"map_id":"m-1"}`, `"key":{"map_id":"m-2"}`), `key is not that of the parent's children`},
		{change(`"key":{"map_id":"m-1"}`, `"key":{"map_id":{"N":"1"}}`), `key is not that of the parent's children`},
		{change(`"user_id":"u-1",`, ``), `parent.key.user_id is missing`},
		{change(`"dedupeKey"`, `"child":"x","dedupeKey"`), `parents of table "maps" have no children of the name "x" here`},
		{change(`"dedupeKey"`, `"child":1,"dedupeKey"`), `child is missing or no text`},
		{change(`"dedupeKey"`, `"sweep":"yes","dedupeKey"`), `sweep is neither true nor false`},
	} {
		w := points(5)
		err := must(t, w.config()).Work(t.Context(), record(sluice.Message{Body: tt.body}))
		if !sluice.IsPermanent(err) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.body, err, tt.want)
		}
		if w.left(t) != 5 || w.calls != 0 {
			t.Errorf("%s: %d left, %d calls", tt.body, w.left(t), w.calls)
		}
	}
	w := points(5)
	if err := must(t, w.config()).Work(t.Context(), mapRemoved()); !sluice.IsPermanent(err) || !strings.Contains(err.Error(), "not for a REMOVE of table maps") {
		t.Error(err)
	}
}

// A prefix that a message lacks would delete more than was meant.
func TestMessageWithoutItsPrefixIsRefused(t *testing.T) {
	w := one()
	w.tables["one"].set(search, sluice.Item{})
	before := w.tables["one"].keys()
	c := w.one(Child{Partition: Attr{Name: "PK", From: "PK"}, Sort: Attr{Name: "SK", Before: "attempt#"}})
	for _, key := range []string{`{"PK":"s-1"}`, `{"PK":"s-1","SK":"attempt#"}`, `{"PK":"s-1","SK":{"begins_with":""}}`, `{"PK":"s-1","SK":{"begins_with":1}}`} {
		m := sluice.Message{Body: `{"kind":"cascade.delete","table":"one","key":` + key + `,"parent":{"table":"one","key":{"PK":"s-1","SK":"search"}},"dedupeKey":"one/s-1/search"}`}
		if err := must(t, c).Work(t.Context(), record(m)); !sluice.IsPermanent(err) {
			t.Errorf("%s: %v", key, err)
		}
	}
	if !slices.Equal(before, w.tables["one"].keys()) {
		t.Error("rows are gone")
	}
}

func TestWorkerTellsCascadesApart(t *testing.T) {
	w := points(1)
	a, b := must(t, w.config()), must(t, w.config())
	if _, err := Worker(a, b); err == nil || !strings.Contains(err.Error(), `two Cascades of table maps have children of the name ""`) {
		t.Error(err)
	}
	if _, err := Worker(); err == nil {
		t.Error("a worker of nothing")
	}
	c := w.config()
	c.Children[0].Name = "more"
	if _, err := Worker(a, must(t, c)); err != nil {
		t.Error(err)
	}
}

// A message with the prefix of another parent's children is refused, if the parent's
// key shows it.
func TestMessageWithThePrefixOfAnotherIsRefused(t *testing.T) {
	w := one()
	x := must(t, w.one(Child{Partition: Attr{Name: "PK", Before: "MAP#", From: "map"}, Sort: Attr{Name: "SK", Before: "POINT#", From: "PK", After: "#"}}))
	for _, prefix := range []string{"POINT#s-10#", "POINT#s-1", "POINT#s-1#"} {
		want := 9
		if prefix == "POINT#s-1#" {
			want = 8
		}
		w.tables["one"].set(search, sluice.Item{})
		body := `{"kind":"cascade.delete","table":"one","key":{"PK":"MAP#7","SK":{"begins_with":"` + prefix + `"}},"parent":{"table":"one","key":{"PK":"s-1","SK":"search"}},"dedupeKey":"one/s-1/search"}`
		err := x.Work(t.Context(), record(sluice.Message{Body: body}))
		w.tables["one"].put(search)
		if got := len(w.tables["one"].rows); got != want || (err == nil) != (want == 8) {
			t.Errorf("%s: %d rows are left, %v", prefix, got, err)
		}
	}
}

// SQS refuses control characters, U+FFFE and U+FFFF. A cascade works for parents with
// such characters in their keys.
func TestKeysWithCharactersThatNoQueueTakes(t *testing.T) {
	const key = `{"a":{"S":"x\u0000y\n"},"b":{"S":"\uffff\u001f\ufffe"}}`
	w, c := keysCascade(t)
	if err := c.Remove(t.Context(), removed("parents", key, "")); err != nil {
		t.Fatal(err)
	}
	m := w.queue[0].m
	if want := "parents/x%00y\n/%EF%BF%BF%1F%EF%BF%BE"; m.Attributes["dedupeKey"].Value != want {
		t.Errorf("%q, want %q", m.Attributes["dedupeKey"].Value, want)
	}
	for _, s := range []string{m.Body, m.Attributes["dedupeKey"].Value} {
		if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\n' || r == 0xFFFE || r == 0xFFFF }) {
			t.Errorf("%q", s)
		}
	}
	w.tables["children"].put(`{"b":{"S":"\uffff\u001f\ufffe"},"id":{"S":"1"}}`, `{"b":{"S":"other"},"id":{"S":"1"}}`)
	if err := c.Work(t.Context(), record(m)); err != nil || len(w.tables["children"].rows) != 1 {
		t.Errorf("%v, %q are left", err, w.tables["children"].keys())
	}
}
