package manhunt

import (
	"strings"
	"testing"
)

func TestConnectWantsOneTable(t *testing.T) {
	_, err := Connect(t.Context(), Connection{
		Tables: []string{"manhunt", "reflex"},
		Env:    func(string) string { return "attempts" },
	})
	if err == nil || !strings.Contains(err.Error(), "one table") || !strings.Contains(err.Error(), "--table") || !strings.Contains(err.Error(), "manhunt, reflex") {
		t.Error(err)
	}
}
