//go:build proof

package boltstate

import "testing"

func TestProofDamagedPages(t *testing.T) { damagedPages(t, 2000) }

func TestProofDamagedLetters(t *testing.T) { damagedLetters(t, 2000) }
