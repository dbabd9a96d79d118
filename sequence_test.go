package sluice_test

import (
	"cmp"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
)

func TestSequenceValid(t *testing.T) {
	for s, want := range map[sluice.Sequence]bool{
		"0": true, "111": true, "000000000000000000001": true, sluice.Sequence(strings.Repeat("9", 40)): true,
		"": false, sluice.Sequence(strings.Repeat("9", 41)): false, "-1": false, "1x": false, " 1": false, "1.0": false, "１": false,
	} {
		if s.Valid() != want {
			t.Errorf("%q valid: %v", s, !want)
		}
	}
}

func TestSequenceCompareAgainstBigNumbers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	random := func() sluice.Sequence {
		var sb strings.Builder
		sb.WriteString(strings.Repeat("0", rng.IntN(3)))
		for range 1 + rng.IntN(37) {
			sb.WriteByte('0' + byte(rng.IntN(2)))
		}
		return sluice.Sequence(sb.String())
	}
	number := func(s sluice.Sequence) *big.Int {
		n, ok := new(big.Int).SetString(string(s), 10)
		if !ok {
			t.Fatalf("%q", s)
		}
		return n
	}
	for range 5000 {
		a, b := random(), random()
		want := number(a).Cmp(number(b))
		if got := a.Compare(b); got != want {
			t.Fatalf("%s compared with %s is %d, wanted %d", a, b, got, want)
		}
		if got := cmp.Compare(a.Fence(), b.Fence()); got != want || len(a.Fence()) != 40 {
			t.Fatalf("fences %s and %s compare as %d, wanted %d", a.Fence(), b.Fence(), got, want)
		}
	}
	if sluice.Sequence("").Compare("0") >= 0 || sluice.Sequence("0").Compare("") <= 0 || sluice.Sequence("").Compare("") != 0 {
		t.Error("an absent sequence number is not before the first")
	}
}
