package item_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"regexp"
	"strings"
	"unicode/utf8"
)

// wellFormed is the slow and plain way to say whether data is an attribute
// map: encoding/json reads it token by token, big numbers are weighed as such.
func wellFormed(data []byte) error {
	if !utf8.Valid(data) {
		return errors.New("invalid UTF-8")
	}
	if !json.Valid(data) {
		return errors.New("not JSON")
	}
	if loneSurrogate(string(data)) {
		return errors.New("lone surrogate")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := oracleMap(dec, data, 0); err != nil {
		return err
	}
	if _, err := dec.Token(); err != io.EOF {
		return errors.New("more data")
	}
	return nil
}

var (
	escapes   = regexp.MustCompile(`\\(u[0-9a-fA-F]{4}|.)`)
	high, low = regexp.MustCompile(`(?i)^\\ud[89ab]`), regexp.MustCompile(`(?i)^\\ud[c-f]`)
)

func loneSurrogate(s string) bool {
	all := escapes.FindAllStringIndex(s, -1)
	for i := 0; i < len(all); i++ {
		switch e := s[all[i][0]:all[i][1]]; {
		case low.MatchString(e):
			return true
		case high.MatchString(e):
			if i+1 == len(all) || all[i+1][0] != all[i][1] || !low.MatchString(s[all[i+1][0]:]) {
				return true
			}
			i++
		}
	}
	return false
}

func expect(dec *json.Decoder, want json.Token) error {
	if t, err := dec.Token(); err != nil || t != want {
		return fmt.Errorf("%v (%v) instead of %v", t, err, want)
	}
	return nil
}

func oracleMap(dec *json.Decoder, data []byte, depth int) error {
	if depth > 32 {
		return errors.New("too deep")
	}
	if err := expect(dec, json.Delim('{')); err != nil {
		return err
	}
	seen := map[string]bool{}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return err
		}
		if name := t.(string); seen[name] {
			return errors.New("duplicate " + name)
		} else {
			seen[name] = true
		}
		if err := oracleValue(dec, data, depth); err != nil {
			return err
		}
	}
	return expect(dec, json.Delim('}'))
}

func oracleValue(dec *json.Decoder, data []byte, depth int) error {
	if err := expect(dec, json.Delim('{')); err != nil {
		return err
	}
	tag, err := dec.Token()
	if err != nil {
		return err
	}
	if before := data[:dec.InputOffset()]; tag != json.Delim('}') && !strings.HasSuffix(string(before), fmt.Sprintf("%q", tag)) {
		return errors.New("escaped tag")
	}
	switch tag {
	case "S", "N", "B":
		err = oracleScalar(dec, tag.(string))
	case "BOOL", "NULL":
		var v json.Token
		if v, err = dec.Token(); err == nil && v != true && v != false {
			err = errors.New("neither true nor false")
		}
	case "M":
		err = oracleMap(dec, data, depth+1)
	case "L", "SS", "NS", "BS":
		if err = expect(dec, json.Delim('[')); err != nil {
			return err
		}
		if tag == "L" && depth == 32 {
			return errors.New("too deep")
		}
		for err == nil && dec.More() {
			if tag == "L" {
				err = oracleValue(dec, data, depth+1)
			} else {
				err = oracleScalar(dec, tag.(string)[:1])
			}
		}
		if err == nil {
			err = expect(dec, json.Delim(']'))
		}
	default:
		err = fmt.Errorf("unknown tag %v", tag)
	}
	if err != nil {
		return err
	}
	return expect(dec, json.Delim('}'))
}

var (
	numberForm  = regexp.MustCompile(`^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE]([+-]?[0-9]+))?$`)
	most, least = rat("9.9999999999999999999999999999999999999E125"), rat("1E-130")
)

func rat(s string) *big.Rat {
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		panic(s)
	}
	return r
}

func oracleScalar(dec *json.Decoder, tag string) error {
	t, err := dec.Token()
	s, ok := t.(string)
	if err != nil || !ok {
		return fmt.Errorf("%v (%v) is no string", t, err)
	}
	switch tag {
	case "N":
		return oracleNumber(s)
	case "B":
		if strings.ContainsAny(s, "\r\n") {
			return errors.New("line break")
		}
		_, err = base64.StdEncoding.Strict().DecodeString(s)
	}
	return err
}

func oracleNumber(s string) error {
	m := numberForm.FindStringSubmatch(s)
	if m == nil {
		return errors.New("invalid number")
	}
	digits := strings.Trim(strings.NewReplacer(".", "").Replace(m[1]), "0")
	if digits == "" {
		return nil
	}
	if len(digits) > 38 {
		return errors.New("too many digits")
	}
	if exp := strings.TrimLeft(m[3], "+-0"); len(exp) > 4 {
		return errors.New("exponent out of range")
	}
	n := rat(strings.TrimPrefix(s, "+"))
	if n.Abs(n); n.Cmp(most) > 0 || n.Cmp(least) < 0 {
		return errors.New("out of range")
	}
	return nil
}
