// Package keyhash names keys in logs and in error texts, which are logged, without
// their values. A hash tells lines about one key from those about others. It differs
// from process to process, so that nobody finds keys by hashing guesses.
package keyhash

import (
	"fmt"
	"hash/maphash"

	"github.com/sluicehq/sluice/item"
)

var seed = maphash.MakeSeed()

// Item names an item by its key. Of a record's key it is the hash that /lanes has.
func Item(key item.Item) string { return fmt.Sprintf("(key hash %016x)", key.Hash()) }

// Text names what a text that is made of a key stands for.
func Text(key string) string { return fmt.Sprintf("(key hash %016x)", maphash.String(seed, key)) }
