// Package keyhash names keys in logs and error texts without their values. A hash
// distinguishes lines about one key from those about others. It differs between
// processes, so that nobody finds keys by hashing guesses.
package keyhash

import (
	"fmt"
	"hash/maphash"

	"github.com/sluicehq/sluice/item"
)

var seed = maphash.MakeSeed()

// Item names an item by its key. Of a record's key it is the hash that /lanes has.
func Item(key item.Item) string { return fmt.Sprintf("(key hash %016x)", key.Hash()) }

// Text returns the name for a text that is made of a key.
func Text(key string) string { return fmt.Sprintf("(key hash %016x)", maphash.String(seed, key)) }
