package writer

import (
	"crypto/sha3"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/examples/internal/kit"
	"github.com/sluicehq/sluice/item"
)

// ID returns the id of a natural key, such as
// NK#educationOrganizationId=122: the same for all who ask.
func ID(naturalKey string) string {
	return hex.EncodeToString(sha3.SumSHAKE128([]byte(naturalKey), 28))
}

// What keys begin with.
const (
	typePrefix   = "TYPE#"
	keyPrefix    = "NK#"
	entityPrefix = "ID#"
	guardPrefix  = "REFC#ID#"
	assignPrefix = "ASSIGN#ID#"
	fromPrefix   = "FREF#ID#"
	toPrefix     = "TREF#ID#"
)

// Kinds of items.
const (
	Entity = "entity" // a document
	Assign = "assign" // a document's count as what it is a kind of
	Guard  = "guard"  // a document's count
	FRef   = "fref"   // what a document refers to
	TRef   = "tref"   // who refers to a document
)

// Kind returns the kind of an item by its key; "" for an unknown key.
func Kind(key sluice.Item) string {
	pk, sk := kit.Text(key, "pk"), kit.Text(key, "sk")
	switch {
	case strings.HasPrefix(pk, fromPrefix):
		return FRef
	case strings.HasPrefix(pk, toPrefix):
		return TRef
	case !strings.HasPrefix(pk, typePrefix):
		return ""
	case strings.HasPrefix(sk, entityPrefix):
		return Entity
	case strings.HasPrefix(sk, assignPrefix):
		return Assign
	case strings.HasPrefix(sk, guardPrefix):
		return Guard
	}
	return ""
}

// EntityKey is the key of a document.
func EntityKey(typ, id string) sluice.Item { return key(typ, entityPrefix+id) }

// EntityID is the id of the document with the key; "" when it is another item's.
func EntityID(key sluice.Item) string {
	id, _ := strings.CutPrefix(kit.Text(key, "sk"), entityPrefix)
	if Kind(key) != Entity {
		return ""
	}
	return id
}

// isDescriptor reports whether a type's documents are words of a vocabulary.
// They are named by documents, and nobody counts by how many.
func isDescriptor(typ string) bool { return strings.HasSuffix(typ, "Descriptor") }

// Named names an item in logs, and in errors, which are logged: by the hash that the
// daemon has for the item's key, and not by the key.
func Named(it sluice.Item) string {
	return fmt.Sprintf("(key hash %016x)", it.Only("pk", "sk").Hash())
}

func key(pk, sk string) sluice.Item {
	return item.Of(item.String("pk", pk), item.String("sk", sk))
}
