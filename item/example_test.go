package item_test

import (
	"fmt"

	"github.com/sluicehq/sluice/item"
)

func mustParse(attrs string) item.Item {
	it, err := item.Parse([]byte(attrs))
	if err != nil {
		panic(err)
	}
	return it
}

func ExampleItem_Lookup() {
	it := mustParse(`{"method":{"M":{"type":{"S":"email"},"waits":{"L":[{"N":"0"},{"N":"1200"}]}}}}`)
	v, ok := it.Lookup("method.waits.1")
	fmt.Println(v.Kind(), v.Str(), ok)
	// Output: N 1200 true
}

func ExampleItem_Decode() {
	it := mustParse(`{"PK":{"S":"89fa8f8"},"order":{"N":"2"},"enabled":{"BOOL":true},"tags":{"SS":["night"]}}`)
	var method struct {
		Contact string `dynamodbav:"PK"`
		Order   int    `dynamodbav:"order"`
		Enabled bool   `dynamodbav:"enabled"`
		Tags    []string
	}
	if err := it.Decode(&method); err != nil {
		panic(err)
	}
	fmt.Printf("%+v\n", method)
	// Output: {Contact:89fa8f8 Order:2 Enabled:true Tags:[night]}
}

func ExampleItem_AppendJSON() {
	it := mustParse(`{"name":{"S":"Zavier"},"id":{"N":"12345678901234567890123"},"codes":{"NS":["2","1"]},"hash":{"B":"AAEC"}}`)
	fmt.Println(string(it.AppendJSON(nil)))
	fmt.Println(string(it.AppendJSON(nil, item.JSON{SortedKeys: true})))
	// Output:
	// {"name":"Zavier","id":12345678901234567890123,"codes":[2,1],"hash":"AAEC"}
	// {"codes":[2,1],"hash":"AAEC","id":12345678901234567890123,"name":"Zavier"}
}

func ExampleParse() {
	_, err := item.Parse([]byte(`{"a":{"M":{"b":{"S":"x","N":"1"}}}}`))
	fmt.Println(err)
	// Output: attribute "a.b", offset 23: more than one type tag
}
