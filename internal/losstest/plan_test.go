//go:build integration

package losstest

import (
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// The plan of writes is fixed: version v of item i, from 1 to versions, is a Put or
// sometimes a Delete. An item that is made again continues the count.
const (
	versions = 10
	changes  = items * versions

	block = 100 // items that one writer changes at a time, so that an item's changes are close to each other
	batch = 25  // in a BatchWriteItem call
)

func name(i int) string { return fmt.Sprintf("i-%05d", i) }

// number is the item of a name.
func number(name string) (i int, err error) {
	_, err = fmt.Sscanf(name, "i-%05d", &i)
	return i, err
}

// deletes reports whether a version is a Delete. None is the first, and no two
// follow each other.
func deletes(i, v int) bool { return v > 1 && (i+v)%7 == 0 }

// absent reports whether the item may be without a document once version v was
// written: it is deleted by that one or a later one.
func absent(i, v int) bool {
	for ; v <= versions; v++ {
		if v == 0 || deletes(i, v) {
			return true
		}
	}
	return false
}

// text makes the items differ in size; some are large.
func text(i, v int) string {
	n := 20 + i%200
	if i%200 == 0 {
		n = 40_000
	}
	return strings.Repeat(string(rune('a'+(i+v)%26)), n)
}

func write(i, v int) types.WriteRequest {
	key := &types.AttributeValueMemberS{Value: name(i)}
	if deletes(i, v) {
		return types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: map[string]types.AttributeValue{"pk": key}}}
	}
	return types.WriteRequest{PutRequest: &types.PutRequest{Item: map[string]types.AttributeValue{
		"pk": key, "entityType": &types.AttributeValueMemberS{Value: "thing"},
		"rev": &types.AttributeValueMemberN{Value: fmt.Sprint(v)}, "text": &types.AttributeValueMemberS{Value: text(i, v)},
	}}}
}
