//go:build proof

package config

import (
	"testing"
)

func TestProofSchemaAgrees(t *testing.T) { schemaAgrees(t, 20_000) }
