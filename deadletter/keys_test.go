package deadletter

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/access"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/state"
)

const (
	keyOne = "0123456789abcdef0123456789abcdef"
	keyTwo = "fedcba9876543210fedcba9876543210"
)

func keysOf(t *testing.T, text string) Keys {
	t.Helper()
	k, err := parseKeys(text, "key file k")
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func letterOf(t *testing.T) []byte {
	t.Helper()
	rec := record("a", 10)
	e := newEntry(rec, failure("r"), failure("r").LastAt)
	data, err := e.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestSignature(t *testing.T) {
	k := keysOf(t, keyOne)
	letter := letterOf(t)
	signed := k.Sign(letter)
	if len(signed) != len(letter)+SignatureBytes {
		t.Errorf("%d bytes more, want %d", len(signed)-len(letter), SignatureBytes)
	}
	if err := k.Verify(signed); err != nil {
		t.Fatal(err)
	}
	e, err := Parse(signed)
	if want, _ := Parse(letter); err != nil || fmt.Sprint(e) != fmt.Sprint(want) {
		t.Errorf("a signed letter is read as %+v, %v", e, err)
	}
	if strings.Contains(string(signed), keyOne) {
		t.Error("the letter has the key")
	}
	for i := range signed { // every byte that a redrive acts on, and all others
		forged := []byte(string(signed))
		forged[i] ^= 1
		if k.Verify(forged) == nil {
			t.Fatalf("byte %d (%s) may be another", i, signed[max(i-20, 0):i+1])
		}
	}
	for name, forged := range map[string]string{
		"a member more":       strings.Replace(string(signed), `,"signature"`, `,"route":"other","signature"`, 1),
		"one behind":          strings.TrimSuffix(string(signed), "}") + `,"route":"other"}`,
		"a second signature":  strings.TrimSuffix(string(signed), "}") + string(signed[len(signed)-SignatureBytes-1:]),
		"the one of another":  string(letter[:len(letter)-2]) + string(signed[len(signed)-SignatureBytes-1:]),
		"nothing before it":   string(signed[len(signed)-SignatureBytes-1:]),
		"not signed":          string(letter),
		"signed with nothing": string(Keys{}.Sign(letter)),
		"empty":               "",
	} {
		if k.Verify([]byte(forged)) == nil {
			t.Errorf("%s: %s", name, forged)
		}
	}
	// What is signed begins with its purpose.
	body := letter[:len(letter)-1]
	h := hmac.New(sha256.New, []byte(keyOne))
	h.Write(body)
	for other, text := range map[string]string{"none": fmt.Sprintf("%x", h.Sum(nil)), "of keys": fmt.Sprintf("%x", k.keys[0].sum(keyPurpose, body))} {
		if k.Verify(fmt.Appendf(nil, `%s%s%s:%s"}`, body, signatureHead, k.keys[0].id, text)) == nil {
			t.Errorf("a signature with another purpose (%s) is one of a letter", other)
		}
	}
}

// While one key takes the place of another, letters of both are verified.
func TestKeyRotation(t *testing.T) {
	before, both, after := keysOf(t, keyOne), keysOf(t, keyTwo+"\n"+keyOne+"\n"), keysOf(t, keyTwo)
	letter := letterOf(t)
	for name, c := range map[string]struct {
		signs, verifies Keys
		want            string
	}{
		"old letters, both keys": {before, both, ""},
		"new letters, both keys": {both, after, ""},
		"old letters, new key":   {before, after, "it is signed with the key " + before.keys[0].id + ", and key file k has the key " + after.keys[0].id},
		"new letters, old key":   {both, before, "it is signed with the key " + after.keys[0].id},
		"no key to verify with":  {both, Keys{}, "there is no key to verify it with: name the file of the functions' key by --letter-key-file"},
		"no key to sign with":    {Keys{}, both, "it is not signed"},
	} {
		err := c.verifies.Verify(c.signs.Sign(letter))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if err != nil && (strings.Contains(err.Error(), keyOne) || strings.Contains(err.Error(), keyTwo)) {
			t.Errorf("%s: the error has a key: %v", name, err)
		}
	}
}

func TestFindKeys(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode fs.FileMode) string {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, []byte(text), mode), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good, other, open := file("good", keyTwo+"\n", 0o640), file("other", keyOne, 0o600), file("open", keyTwo, 0o644)
	short, empty, large := file("short", keyOne+"\nabc", 0o600), file("empty", "\n", 0o600), file("large", strings.Repeat("x", mostKeyFile+1), 0o600)
	for name, c := range map[string]struct {
		env  map[string]string
		file string
		id   string // of the key that signs
		err  string
	}{
		"none":                   {},
		"the variable":           {env: map[string]string{access.LetterKeyEnv: keyOne + " " + keyTwo, access.LetterKeyFileEnv: good}, file: good, id: keysOf(t, keyOne).keys[0].id},
		"the variable of a file": {env: map[string]string{access.LetterKeyFileEnv: other}, file: good, id: keysOf(t, keyOne).keys[0].id},
		"the file":               {file: good, id: keysOf(t, keyTwo).keys[0].id},
		"everybody's":            {file: open, err: "so that everybody on this machine may use it: chmod o= "},
		"a function's":           {env: map[string]string{"AWS_LAMBDA_RUNTIME_API": "x"}, file: open, id: keysOf(t, keyTwo).keys[0].id},
		"too short":              {file: short, err: "key file " + short + ": key 2 has 3 characters: want at least 32"},
		"too short a variable":   {env: map[string]string{access.LetterKeyEnv: "abc"}, err: "$SLUICE_LETTER_KEY: key 1 has 3 characters"},
		"empty":                  {file: empty, err: "has no key"},
		"too large":              {file: large, err: "keys are lines of text"},
		"not there":              {file: filepath.Join(dir, "none"), err: "does not exist: copy the one that the functions have, or make the first by (umask 077; openssl rand -hex 32 > "},
	} {
		k, err := FindKeys(func(name string) string { return c.env[name] }, c.file)
		if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: %v, want %q", name, err, c.err)
		}
		if k.IsZero() != (c.id == "") || c.id != "" && k.keys[0].id != c.id {
			t.Errorf("%s: %d keys", name, len(k.keys))
		}
	}
}

// A letter that a program without the key has made is run only by its name, and
// what becomes of it is not signed in its place.
func TestForgedLetter(t *testing.T) {
	k := keysOf(t, keyOne)
	letters := state.NewMemory()
	plain, signed := NewBox(letters, "app"), NewSignedBox(letters, "app", k)
	forged := park(t, plain, record("a", 10), "")
	good := park(t, signed, record("b", 11), "r")
	later := park(t, signed, record("a", 12), "r") // of the item of the forged one
	c := calls{answer: func(*sluice.Record) error { return errors.New("down") }}
	m := router.New()
	m.Handle("*#*", c.handle, router.Name("r"), router.Redrive())
	m.Handle("*#*", c.handle, router.Name("s"), router.Redrive())

	for _, how := range []How{{}, {Force: true}, {DryRun: true}, {Unsigned: []string{good}}, {Allow: []string{"r", "s"}}} {
		if err := signed.Redrive(t.Context(), m, forged, how); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "it is not signed") || !strings.Contains(err.Error(), "--unsigned "+forged) {
			t.Errorf("%+v: %v", how, err)
		}
	}
	if err := signed.Redrive(t.Context(), m, later, How{Earlier: true}); !errors.Is(err, ErrRefused) {
		t.Errorf("as an earlier change: %v", err)
	}
	if r, err := signed.RedriveAll(t.Context(), m, Filter{}, How{Force: true, DryRun: true}); r.Failed != 1 || r.WouldRun != 2 {
		t.Errorf("with all: %+v, %v", r, err)
	}
	if c.got != nil {
		t.Fatalf("it ran: %v", c.got)
	}

	// One for all routes becomes one for each that failed.
	how := How{Unsigned: []string{forged}}
	if err := signed.Redrive(t.Context(), m, forged, how); err == nil || len(c.got) != 2 {
		t.Fatalf("by its name: %v, %v", err, c.got)
	}
	if err := signed.Redrive(t.Context(), m, good, How{}); err == nil || errors.Is(err, ErrRefused) {
		t.Fatalf("a signed one: %v", err)
	}
	unsigned := 0
	if err := signed.All(t.Context(), Filter{}, func(e Entry) error {
		if e.Unverified != "" {
			unsigned++
		} else if e.ID != good && e.ID != later {
			t.Errorf("%s was signed, and came of one that was not", e.ID)
		}
		return nil
	}); err != nil || unsigned != 2 {
		t.Errorf("%d are not signed: %v", unsigned, err)
	}
	if e, err := signed.Get(t.Context(), good); err != nil || e.Redrives != 1 || e.Unverified != "" {
		t.Errorf("what failed again: %+v, %v", e, err)
	}
}

// What is made to fit is signed as it is sent.
func TestSignedLetterThatFits(t *testing.T) {
	k := keysOf(t, keyOne)
	const most = 20 << 10
	var sent []byte
	s := Sender(func(_ context.Context, _ Entry, data []byte) error {
		sent = k.Sign(data)
		return nil
	}).AtMost(most - SignatureBytes)
	for _, size := range []int{100, 15 << 10, 200 << 10} {
		if err := s.Park(t.Context(), big(size), failure("r")); err != nil {
			t.Fatal(err)
		}
		if err := k.Verify(sent); err != nil || len(sent) > most {
			t.Errorf("%d bytes of a record of %d: %v", len(sent), size, err)
		}
	}
}

// A letter that nobody has signed is known by what a redrive would act on.
func TestContentID(t *testing.T) {
	of := func(e Entry) string {
		t.Helper()
		id, err := e.ContentID()
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	rec := recordtest.New(recordtest.Spec{Keys: `{"pk":{"S":"a"}}`, New: `{"pk":{"S":"` + strings.Repeat("a", 20<<10) + `"}}`, Sequence: recordtest.Sequence(10)})
	e := newEntry(&rec, failure("r"), failure("r").LastAt)
	id := of(e)
	if fence, _, _ := strings.Cut(e.ID, "-"); !strings.HasPrefix(id, fence+"-") || len(id) != len(e.ID)+16 {
		t.Errorf("%s is not in the place of %s, with a hash twice as long", id, e.ID)
	}
	packed := fit(t, e, 17<<10)
	for name, same := range map[string]func(*Entry){
		"id":         func(e *Entry) { e.ID = "x" },
		"errors":     func(e *Entry) { e.First.Error, e.Last.Details = "x", []map[string]string{{"a": "b"}} },
		"times":      func(e *Entry) { e.ParkedAt, e.Last.At = e.ParkedAt.Add(1), e.Last.At.Add(1) },
		"failures":   func(e *Entry) { e.Attempts++; e.Redrives++ },
		"compressed": func(e *Entry) { *e = packed },
	} {
		other := e
		if same(&other); of(other) != id {
			t.Errorf("it depends on: %s", name)
		}
	}
	for name, differs := range map[string]func(*Entry){
		"record":    func(e *Entry) { e.Raw = bytes.Replace(e.Raw, []byte("aaa"), []byte("aab"), 1) },
		"route":     func(e *Entry) { e.Route = "s" },
		"table":     func(e *Entry) { e.Table = "other" },
		"stream":    func(e *Entry) { e.StreamARN += "x" },
		"shard":     func(e *Entry) { e.ShardID += "x" },
		"sequence":  func(e *Entry) { e.Sequence = recordtest.Sequence(11) },
		"event id":  func(e *Entry) { e.EventID += "x" },
		"event":     func(e *Entry) { e.EventName = sluice.Snapshot },
		"origin":    func(e *Entry) { e.Origin = sluice.Backfilled },
		"reference": func(e *Entry) { e.Raw, e.Ref = nil, &Reference{Keys: e.Record().Keys, Bytes: 1} },
		"gap":       func(e *Entry) { e.Raw, e.Gap = nil, &sluice.Gap{} },
	} {
		other := e
		if differs(&other); of(other) == id {
			t.Errorf("it does not depend on the %s", name)
		}
	}
}
