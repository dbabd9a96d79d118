package kit

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestExit(t *testing.T) {
	usage := Usage("--index is missing")
	for _, tt := range []struct {
		err  error
		code int
		want string
	}{
		{nil, 0, ""},
		{errors.New("no cluster"), 1, "shop: no cluster\n"},
		{usage, 2, "shop: --index is missing\nshop: run \"shop create --help\"\n"},
		{fmt.Errorf("create: %w", usage), 2, "shop: create: --index is missing\nshop: run \"shop create --help\"\n"},
	} {
		var stderr strings.Builder
		if code := Exit(tt.err, "shop", &stderr, "create"); code != tt.code || stderr.String() != tt.want {
			t.Errorf("%v: exit code %d and %q, want %d and %q", tt.err, code, stderr.String(), tt.code, tt.want)
		}
	}
}
