package letterkeys

import (
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
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/access"
	"github.com/sluicehq/sluice/internal/recordtest"
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

func letterOf(t *testing.T) (letter []byte) {
	t.Helper()
	rec := recordtest.New(recordtest.Spec{Keys: `{"pk":{"S":"a"}}`, Sequence: recordtest.Sequence(10), Shard: "shard"})
	send := deadletter.Sender(func(_ context.Context, _ deadletter.Entry, data []byte) error {
		letter = data
		return nil
	})
	at := time.Date(2026, 2, 3, 4, 5, 6, 7, time.UTC)
	failed := sluice.Failure{Route: "r", Attempts: 8, First: errors.New("first <error>"), FirstAt: at, Last: errors.New("last error"), LastAt: at}
	if err := send.Park(t.Context(), &rec, failed); err != nil {
		t.Fatal(err)
	}
	return letter
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
	e, err := deadletter.Parse(signed)
	if want, _ := deadletter.Parse(letter); err != nil || fmt.Sprint(e) != fmt.Sprint(want) {
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

func TestFind(t *testing.T) {
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
		k, err := Find(func(name string) string { return c.env[name] }, c.file)
		if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: %v, want %q", name, err, c.err)
		}
		if k.IsZero() != (c.id == "") || c.id != "" && k.keys[0].id != c.id {
			t.Errorf("%s: %d keys", name, len(k.keys))
		}
	}
}
