package keyhash

import (
	"strings"
	"testing"

	"github.com/sluicehq/sluice/item"
)

func TestNoValue(t *testing.T) {
	a, b := item.Of(item.String("pk", "secret")), item.Of(item.String("pk", "other"))
	if Item(a) != Item(item.Of(item.String("pk", "secret"))) || Item(a) == Item(b) || strings.Contains(Item(a), "secret") {
		t.Error(Item(a), Item(b))
	}
	first, again := Text("secret"), Text("secret")
	if first != again || first == Text("other") || strings.Contains(Text("secret"), "secret") {
		t.Error(Text("secret"), Text("other"))
	}
}
