// Package letterkeys signs dead letters for places where others can write, such as
// a queue, and verifies letters from there.
package letterkeys

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/sluicehq/sluice/internal/access"
)

const (
	// SignatureBytes is the number of bytes that a signature adds to a letter.
	SignatureBytes = len(signatureHead) + keyIDLength + 1 + 2*sha256.Size + 1

	// The signed text begins with purpose. A signature by the same key for
	// another purpose therefore never fits a letter.
	purpose       = "sluice dead letter 1\x00"
	keyPurpose    = "sluice dead letter key 1\x00"
	signatureHead = `,"signature":"1:`
	keyIDLength   = 8
	leastKey      = 32 // characters
	mostKeyFile   = 64 << 10
)

// Keys sign and verify letters. The first key signs and all verify, so a new key
// can replace an old one. The zero Keys has no key: it signs and verifies nothing.
type Keys struct {
	keys []key
	from string // source, for errors
}

type key struct {
	secret []byte
	id     string // identifies the key without revealing it
}

func newKey(secret string) key {
	k := key{secret: []byte(secret)}
	k.id = hex.EncodeToString(k.sum(keyPurpose, nil))[:keyIDLength]
	return k
}

func (k *key) sum(purpose string, data []byte) []byte {
	h := hmac.New(sha256.New, k.secret)
	h.Write([]byte(purpose))
	h.Write(data)
	return h.Sum(nil)
}

// parseKeys parses keys separated by white space, each of at least 32 characters.
// from names their source in errors.
func parseKeys(text, from string) (Keys, error) {
	k := Keys{from: from}
	for i, secret := range strings.Fields(text) {
		if len(secret) < leastKey {
			return Keys{}, fmt.Errorf("%s: key %d has %d characters: want at least %d, as openssl rand -hex 32 prints them", from, i+1, len(secret), leastKey)
		}
		k.keys = append(k.keys, newKey(secret))
	}
	if len(k.keys) == 0 {
		return Keys{}, fmt.Errorf("%s has no key: want one such as openssl rand -hex 32 prints", from)
	}
	return k, nil
}

func readKeys(path string) (Keys, error) {
	info, err := os.Stat(path)
	if err == nil && info.Size() > mostKeyFile {
		err = fmt.Errorf("it has %d bytes: keys are lines of text", info.Size())
	}
	if err != nil {
		return Keys{}, keyFileError(path, err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return Keys{}, keyFileError(path, err)
	}
	return parseKeys(string(text), "key file "+path)
}

func keyFileError(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("key file %s does not exist: copy the one that the functions have, or make the first by (umask 077; openssl rand -hex 32 > %[1]s)", path)
	}
	return fmt.Errorf("key file %s: %w", path, err)
}

// Find reads the keys from SLUICE_LETTER_KEY, the file named in
// SLUICE_LETTER_KEY_FILE, or file. The result may be empty. In a Lambda function
// other users may read the file: it has no other users, and its package must be
// readable.
func Find(env func(string) string, file string) (Keys, error) {
	if text := env(access.LetterKeyEnv); text != "" {
		return parseKeys(text, "$"+access.LetterKeyEnv)
	}
	if named := env(access.LetterKeyFileEnv); named != "" {
		file = named
	}
	switch {
	case file == "":
		return Keys{}, nil
	case env("AWS_LAMBDA_RUNTIME_API") == "":
		if err := access.CheckMode(file); err != nil {
			return Keys{}, keyFileError(file, err)
		}
	}
	return readKeys(file)
}

// IsZero reports whether there is no key.
func (k Keys) IsZero() bool { return len(k.keys) == 0 }

// Sign appends a signature of all bytes to a letter of deadletter.Entry.Append or
// deadletter.Entry.Fit, as its last member. Without a key it returns the letter unchanged.
func (k Keys) Sign(letter []byte) []byte {
	body, ok := bytes.CutSuffix(letter, []byte("}"))
	if k.IsZero() || !ok {
		return letter
	}
	first := k.keys[0]
	return fmt.Appendf(slices.Clone(body), `%s%s:%x"}`, signatureHead, first.id, first.sum(purpose, body))
}

// Verify returns nil if a program with one of the keys sent the letter unchanged,
// and otherwise the reason.
func (k Keys) Verify(letter []byte) error {
	body, id, sum, ok := cutSignature(letter)
	if !ok {
		return errors.New("it is not signed: it was sent before the functions had a key, or by somebody who has none")
	}
	if k.IsZero() {
		return fmt.Errorf("it is signed with the key %s, and there is no key to verify it with: name the file of the functions' key by --letter-key-file, $%s or deadLetter.keyFile", id, access.LetterKeyFileEnv)
	}
	i := slices.IndexFunc(k.keys, func(one key) bool { return one.id == id })
	if i < 0 {
		var have []string
		for _, one := range k.keys {
			have = append(have, one.id)
		}
		return fmt.Errorf("it is signed with the key %s, and %s has the key %s: add the key of the functions behind it", id, k.from, strings.Join(have, ", "))
	}
	if !hmac.Equal(sum, k.keys[i].sum(purpose, body)) {
		return fmt.Errorf("its signature by the key %s is wrong: somebody has changed or forged it", id)
	}
	return nil
}

// cutSignature splits a letter into its signed part and the parts of the
// signature.
func cutSignature(letter []byte) (body []byte, keyID string, sum []byte, ok bool) {
	at := len(letter) - SignatureBytes - len("}")
	if at < 0 || letter[len(letter)-1] != '}' {
		return nil, "", nil, false
	}
	text, headed := strings.CutPrefix(string(letter[at:]), signatureHead)
	keyID, text, _ = strings.Cut(text, ":")
	sum, err := hex.DecodeString(strings.TrimSuffix(text, `"}`))
	if !headed || len(keyID) != keyIDLength || err != nil || len(sum) != sha256.Size {
		return nil, "", nil, false
	}
	return letter[:at], keyID, sum, true
}
