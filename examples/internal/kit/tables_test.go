package kit

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// The service refuses an attribute that is defined twice.
func TestIndexWithAKeyOfItsTable(t *testing.T) {
	in := Schema{Name: "build", Keys: []string{"key", "locale"}, Index: &types.GlobalSecondaryIndex{KeySchema: Key("locale", "name")}}.table("wrhs_")
	var got []string
	for _, a := range in.AttributeDefinitions {
		got = append(got, *a.AttributeName)
	}
	if want := "key locale name"; strings.Join(got, " ") != want || *in.TableName != "wrhs_build" {
		t.Errorf("%s of %s, want %s", got, *in.TableName, want)
	}
}
