package sdkitem_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/item/sdkitem"
)

var both = map[string]types.AttributeValue{
	"s":    &types.AttributeValueMemberS{Value: "quote \" backslash \\ control \x00\x1f\n é 😀 \u2028 </script>"},
	"n":    &types.AttributeValueMemberN{Value: "-12345678901234567890.123456789012345678"},
	"b":    &types.AttributeValueMemberB{Value: []byte{0, 0xff, 0x7f, 0xff}},
	"e":    &types.AttributeValueMemberB{Value: []byte{}},
	"bool": &types.AttributeValueMemberBOOL{Value: true},
	"no":   &types.AttributeValueMemberBOOL{Value: false},
	"null": &types.AttributeValueMemberNULL{Value: true},
	"off":  &types.AttributeValueMemberNULL{Value: false},
	"m":    &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"k\"": &types.AttributeValueMemberS{Value: ""}, "": &types.AttributeValueMemberN{Value: "0"}}},
	"l":    &types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberN{Value: "1"}, &types.AttributeValueMemberL{Value: []types.AttributeValue{}}}},
	"ss":   &types.AttributeValueMemberSS{Value: []string{"b", "a", "b"}},
	"ns":   &types.AttributeValueMemberNS{Value: []string{"123456789012345678901234567890", "1E-130"}},
	"bs":   &types.AttributeValueMemberBS{Value: [][]byte{{1}, {}}},
	"em":   &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{}},
	"es":   &types.AttributeValueMemberSS{Value: []string{}},
}

func TestBothWays(t *testing.T) {
	it, err := sdkitem.FromMap(both)
	if err != nil {
		t.Fatal(err)
	}
	if got := sdkitem.Map(it); !reflect.DeepEqual(got, both) {
		t.Errorf("%v\nwanted %v", got, both)
	}
	for name, av := range both {
		one, err := sdkitem.FromMap(map[string]types.AttributeValue{name: av})
		v, _ := one.Lookup(name)
		if err != nil || !reflect.DeepEqual(sdkitem.Value(v), av) {
			t.Errorf("%s: %v %v", name, sdkitem.Value(v), err)
		}
	}
}

func TestRandomBothWays(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 7))
		it, err := item.Parse([]byte(recordtest.Random(rng, 3).Variant(rng)))
		if err != nil {
			t.Fatal(err)
		}
		again, err := sdkitem.FromMap(sdkitem.Map(it))
		if err != nil || !again.Equal(it) {
			t.Fatalf("%s\nbecame %s: %v", it.Raw(), again.Raw(), err)
		}
	}
}

func TestAbsent(t *testing.T) {
	if sdkitem.Map(item.Item{}) != nil || sdkitem.Value(item.Value{}) != nil {
		t.Error("something came out of nothing")
	}
	if it, err := sdkitem.FromMap(nil); err != nil || it.Exists() {
		t.Error("an absent map made an item")
	}
	if it, err := sdkitem.FromMap(map[string]types.AttributeValue{}); err != nil || !it.Exists() {
		t.Error("an empty map made no item")
	}
	if err := sdkitem.Decode(item.Item{}, &struct{}{}); err == nil {
		t.Error("an absent item was decoded")
	}
}

func TestFromMapRefuses(t *testing.T) {
	deep := types.AttributeValue(&types.AttributeValueMemberNULL{Value: true})
	for range 33 {
		deep = &types.AttributeValueMemberL{Value: []types.AttributeValue{deep}}
	}
	for want, av := range map[string]types.AttributeValue{
		"unsupported attribute value <nil>":                     nil,
		"invalid number":                                        &types.AttributeValueMemberN{Value: "x"},
		`element 1: text is not`:                                &types.AttributeValueMemberSS{Value: []string{"a", "\xff"}},
		"nested deeper":                                         deep,
		"nil *types.AttributeValueMemberS":                      (*types.AttributeValueMemberS)(nil),
		"nil *types.AttributeValueMemberL":                      &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"in": (*types.AttributeValueMemberL)(nil)}},
		"unsupported attribute value *types.UnknownUnionMember": &types.UnknownUnionMember{Tag: "X"},
	} {
		_, err := sdkitem.FromMap(map[string]types.AttributeValue{"attr": av})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `"attr`) {
			t.Errorf("error %v, wanted %s", err, want)
		}
	}
	if _, err := sdkitem.FromMap(map[string]types.AttributeValue{"\xff": &types.AttributeValueMemberS{}}); err == nil {
		t.Error("a name that is not UTF-8 passed")
	}
}

func ExampleMap() {
	it, err := item.Parse([]byte(`{"PK":{"S":"a271244"},"order":{"N":"1"}}`))
	if err != nil {
		panic(err)
	}
	av := sdkitem.Map(it)
	fmt.Println(av["order"].(*types.AttributeValueMemberN).Value)
	// Output: 1
}

// A type that implements the SDK's Unmarshaler.
func ExampleDecode() {
	it, err := item.Parse([]byte(`{"started":{"N":"1577733134"}}`))
	if err != nil {
		panic(err)
	}
	var row struct {
		Started attributevalue.UnixTime `dynamodbav:"started"`
	}
	if err := sdkitem.Decode(it, &row); err != nil {
		panic(err)
	}
	fmt.Println(time.Time(row.Started).UTC())
	// Output: 2019-12-30 19:12:14 +0000 UTC
}
