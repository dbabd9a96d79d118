package projection

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
)

// The documents of meadowlark: the fields of a map, and some of its own.
func TestMeadowlark(t *testing.T) {
	info := func(dst []byte, it sluice.Item) ([]byte, error) {
		info, _ := it.Lookup("info")
		sk, _ := it.Lookup("sk")
		doc := info.Map().Without("_unvalidated").With(item.String("id", sk.Str()[len("ID#"):]))
		return item.AppendString(dst, doc.AppendJSON(nil, item.JSON{SortedKeys: true})), nil
	}
	o := Options{
		Index: "{pk|lower|replace:#:$|replace:.:-}", ID: "{sk|trim:ID#}", Version: ByAttribute("rev"),
		Include: []string{"info"}, Exclude: []string{"info._unvalidated"}, Flatten: []Flatten{{Path: "info"}},
		First: []Field{Text("id", "{sk|trim:ID#}")},
		Last:  []Field{Computed("info", info), Copy("createdBy", "ownerId"), Copy("extractedEdOrgId", "edOrgId"), Copy("securityEdOrgId", "securityEdOrgId")},
	}
	rec := sluice.DecodeRecord([]byte(`{"eventID":"e1","eventName":"INSERT","eventSource":"aws:dynamodb","eventSourceARN":"arn:aws:dynamodb:us-east-1:000000000000:table/meadowlark/stream/2019-12-30T00:00:00.000","dynamodb":{"ApproximateCreationDateTime":1577734334,"Keys":{"pk":{"S":"TYPE#Ed-Fi#3.3.1-b#School"},"sk":{"S":"ID#7a5c"}},"NewImage":{"pk":{"S":"TYPE#Ed-Fi#3.3.1-b#School"},"sk":{"S":"ID#7a5c"},"ownerId":{"S":"vendor1"},"edOrgId":{"S":"122"},"rev":{"N":"1638802062000000"},` +
		`"info":{"M":{"schoolId":{"N":"122"},"_unvalidated":{"BOOL":true},"gradeLevels":{"L":[]},"createdBy":{"S":"me"}}}},"SequenceNumber":"100000000000000000001","StreamViewType":"NEW_AND_OLD_IMAGES"}}`))
	ops, err := must(t, nil, o).Project(rec)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"id":"7a5c","schoolId":122,"gradeLevels":[],"info":"{\"createdBy\":\"me\",\"gradeLevels\":[],\"id\":\"7a5c\",\"schoolId\":122}","createdBy":"vendor1","extractedEdOrgId":"122"}`
	if diff := cmp.Diff(want, string(ops[0].Body)); diff != "" {
		t.Error(diff)
	}
	if ops[0].Index != "type$ed-fi$3-3-1-b$school" || ops[0].ID != "7a5c" || ops[0].Version != 1638802062000000 {
		t.Errorf("%q %q %d", ops[0].Index, ops[0].ID, ops[0].Version)
	}
}

func TestSetsAreSorted(t *testing.T) {
	got := bodyOf(t, small(), `{"pk":{"S":"a"},"rev":{"N":"1"},"ss":{"SS":["b","a.gz","a"]},"ns":{"NS":["10","-3","9.5","-20","0"]},"l":{"L":[{"SS":["y","x"]},{"S":"b"},{"S":"a"}]}}`)
	want := `{"pk":"a","rev":1,"ss":["a","a.gz","b"],"ns":[-20,-3,0,9.5,10],"l":[["x","y"],"b","a"]}`
	if got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}
