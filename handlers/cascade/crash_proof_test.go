//go:build proof

package cascade

import "testing"

func TestProofOnlyChildrenGo(t *testing.T) { onlyChildrenGo(t, 3000) }
