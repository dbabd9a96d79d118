package dynamodb

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
)

func TestCheck(t *testing.T) {
	table := func(status string) string {
		return `{"Table":{"TableStatus":"` + status + `","KeySchema":[{"AttributeName":"sk","KeyType":"RANGE"},{"AttributeName":"pk","KeyType":"HASH"}]}}`
	}
	for _, c := range []struct {
		name   string
		o      Options
		status int
		answer string
		calls  int
		says   string // nothing: it passes
	}{
		{"there", Options{}, 200, table("ACTIVE"), 1, ""},
		{"being changed", Options{}, 200, table("UPDATING"), 1, ""},
		{"being made", Options{}, 200, table("CREATING"), 1, "CREATING at AWS in region us-east-1"},
		{"being deleted", Options{}, 200, table("DELETING"), 1, "DELETING"},
		{"missing", Options{}, 400, refusal("ResourceNotFoundException"), 1, "create it, or correct its name"},
		{"no permission", Options{}, 400, refusal("AccessDeniedException"), 1, "dynamodb:DescribeTable"},
		{"no permission needed", Options{Keys: map[string][]string{"t": {"pk", "sk"}}}, 400, refusal("AccessDeniedException"), 1, ""},
		{"the key as named", Options{Keys: map[string][]string{"arn:aws:dynamodb:us-east-1:1:table/t": {"pk", "sk"}}}, 200, table("ACTIVE"), 1, ""},
		{"another key", Options{Keys: map[string][]string{"t": {"id"}}}, 200, table("ACTIVE"), 1, `its key is ["pk" "sk"]`},
		{"wrong credentials", Options{}, 400, refusal("UnrecognizedClientException"), 1, "AWS_PROFILE"},
		{"no answer", Options{}, 0, "", checkAttempts, "unexpected EOF"},
		{"an empty answer", Options{}, 200, `{}`, 1, "without a table"},
		{"no key", Options{}, 200, `{"Table":{}}`, 1, "without a key"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := tablesStub{other: func(string) (int, string) { return c.status, c.answer }}
				err := s.store(t, c.o).Check(t.Context(), "t")
				if (err == nil) != (c.says == "") || err != nil && (!strings.Contains(err.Error(), c.says) || !strings.HasPrefix(err.Error(), `dynamodb: table "t": `)) {
					t.Error(err)
				}
				if len(s.calls) != c.calls {
					t.Errorf("%d calls", len(s.calls))
				}
			})
		})
	}
}

// A service that begins a moment later than the program is waited for.
func TestCheckOfAServiceThatBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, calls := tablesStub{}, 0
		s.other = func(string) (int, string) {
			if calls++; calls < 6 {
				return 0, ""
			}
			return 200, `{"Table":{"TableStatus":"ACTIVE","KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}]}}`
		}
		if err := s.store(t, Options{}).Check(t.Context(), "t"); err != nil {
			t.Errorf("after %d calls: %v", calls, err)
		}
	})
}

// Check reports the mistakes of all tables. Put does not ask again for keys that Check
// has read.
func TestCheckOfSeveral(t *testing.T) {
	s := tablesStub{}
	n := 0
	s.other = func(string) (int, string) {
		if n++; n == 2 {
			return 200, `{"Table":{"TableStatus":"ACTIVE","KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}]}}`
		}
		return 400, refusal("ResourceNotFoundException")
	}
	st := s.store(t, Options{})
	err := st.Check(t.Context(), "a", "b", "c")
	if text := fmt.Sprint(err); !strings.Contains(text, `"a"`) || strings.Contains(text, `"b"`) || !strings.Contains(text, `"c"`) {
		t.Error(err)
	}
	if err := st.Put(t.Context(), "b", thing("k", "v")); err != nil || len(s.calls) != 3 {
		t.Errorf("%v, %q", err, s.calls)
	}
	if err := st.Check(t.Context()); err != nil {
		t.Error(err)
	}
}
