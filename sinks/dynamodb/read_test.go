package dynamodb

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/item"
)

func TestQueryOnTheWire(t *testing.T) {
	for _, c := range []struct {
		name string
		q    dynamo.Query
		want string
	}{
		{"a partition", dynamo.Query{Table: "t", Partition: item.String("status", "x")},
			`{"TableName":"t","ConsistentRead":true,"ScanIndexForward":true,"KeyConditionExpression":"#p = :p","ExpressionAttributeNames":{"#p":"status"},"ExpressionAttributeValues":{":p":{"S":"x"}}}`},
		{"all of it", dynamo.Query{Table: "t", Index: "i", Partition: item.Number("p", "1"), Sort: dynamo.Prefix("s.t", "a#"), Descending: true, Limit: 7, Attributes: []string{"name", "a.b", "name"}, After: item.Of(item.Number("p", "2"))},
			`{"TableName":"t","IndexName":"i","ConsistentRead":false,"ScanIndexForward":false,"Limit":7,"KeyConditionExpression":"#p = :p AND begins_with(#s, :s)","ProjectionExpression":"#a0, #a1","ExclusiveStartKey":{"p":{"N":"2"}},
			  "ExpressionAttributeNames":{"#p":"p","#s":"s.t","#a0":"name","#a1":"a.b"},"ExpressionAttributeValues":{":p":{"N":"1"},":s":{"S":"a#"}}}`},
		{"whole items of an index", dynamo.Query{Table: "t", Index: "i", Partition: item.String("p", "1"), Whole: true},
			`{"TableName":"t","IndexName":"i","ConsistentRead":false,"ScanIndexForward":true,"Select":"ALL_ATTRIBUTES","KeyConditionExpression":"#p = :p","ExpressionAttributeNames":{"#p":"p"},"ExpressionAttributeValues":{":p":{"S":"1"}}}`},
		{"before", dynamo.Query{Table: "t", Partition: item.Binary("p", []byte{0, 255}), Sort: dynamo.Before(item.Number("s", "5"))},
			`{"TableName":"t","ConsistentRead":true,"ScanIndexForward":true,"KeyConditionExpression":"#p = :p AND #s < :s","ExpressionAttributeNames":{"#p":"p","#s":"s"},"ExpressionAttributeValues":{":p":{"B":"AP8="},":s":{"N":"5"}}}`},
		{"between", dynamo.Query{Table: "t", Partition: item.String("p", "1"), Sort: dynamo.Between(item.String("s", "a"), item.String("s", "b"))},
			`{"TableName":"t","ConsistentRead":true,"ScanIndexForward":true,"KeyConditionExpression":"#p = :p AND #s BETWEEN :s AND :t","ExpressionAttributeNames":{"#p":"p","#s":"s"},"ExpressionAttributeValues":{":p":{"S":"1"},":s":{"S":"a"},":t":{"S":"b"}}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := tablesStub{other: func(string) (int, string) {
				return 200, `{"Items":[{"p":{"N":"1"}},{}],"LastEvaluatedKey":{"p":{"N":"1"}}}`
			}}
			page, err := s.store(t, Options{}).Query(t.Context(), c.q)
			if err != nil || len(page.Items) != 2 || string(page.Items[0].Raw()) != `{"p":{"N":"1"}}` || string(page.Next.Raw()) != `{"p":{"N":"1"}}` {
				t.Errorf("%v %v", page, err)
			}
			var got, want any
			if err := json.Unmarshal([]byte(c.want), &want); err != nil {
				t.Fatal(err)
			}
			if json.Unmarshal([]byte(s.bodies[0]), &got); !reflect.DeepEqual(got, want) {
				t.Errorf("%s\nwant %s", s.bodies[0], c.want)
			}
		})
	}
}

func TestTheLastPageHasNoNext(t *testing.T) {
	for _, answer := range []string{`{}`, `{"Items":null,"LastEvaluatedKey":null}`, `{"Items":[],"LastEvaluatedKey":{}}`} {
		s := tablesStub{other: func(string) (int, string) { return 200, answer }}
		page, err := s.store(t, Options{}).Query(t.Context(), dynamo.Query{Table: "t", Partition: item.String("p", "1")})
		if err != nil || len(page.Items) != 0 || page.Next.Exists() {
			t.Errorf("%v %v", page, err)
		}
	}
}

func TestQueriesThatCanNeverBe(t *testing.T) {
	p := item.String("p", "1")
	for want, q := range map[string]dynamo.Query{
		"partition key: none":   {},
		"partition key: it has": {Partition: item.String("", "x")},
		"sort key: none":        {Partition: p, Sort: dynamo.Sort{Op: "<"}},
		`operator "LIKE"`:       {Partition: p, Sort: dynamo.Sort{Op: "LIKE", Key: p}},
		`BETWEEN of two`:        {Partition: p, Sort: dynamo.Between(item.String("a", "1"), item.String("b", "2"))},
		"limit of -1":           {Partition: p, Limit: -1},
		"limit of 4294967296":   {Partition: p, Limit: 1 << 32},
		"number":                {Partition: item.Number("p", "one")},
	} {
		var s tablesStub
		q.Table = "t"
		_, err := s.store(t, Options{}).Query(t.Context(), q)
		if !sluice.IsPermanent(err) || !strings.Contains(fmt.Sprint(err), want) || !strings.Contains(fmt.Sprint(err), `table "t"`) || len(s.calls) != 0 {
			t.Errorf("%s: %v (%q)", want, err, s.calls)
		}
	}
}

func TestGetOnTheWire(t *testing.T) {
	s := tablesStub{other: func(string) (int, string) {
		return 200, `{"Item":{"pk":{"S":"a"},"n":{"N":"12345678901234567890123456789012345678"},"b":{"B":"AP9//w=="}}}`
	}}
	st := s.store(t, Options{})
	it, err := st.Get(t.Context(), "t", thing("a", ""))
	if err != nil || string(it.Raw()) != `{"b":{"B":"AP9//w=="},"n":{"N":"12345678901234567890123456789012345678"},"pk":{"S":"a"}}` {
		t.Errorf("%s %v", it.Raw(), err)
	}
	if !strings.Contains(s.bodies[0], `"ConsistentRead":true`) || !strings.Contains(s.bodies[0], `"Key":{"pk":{"S":"a"}}`) {
		t.Error(s.bodies[0])
	}
	s.other = func(string) (int, string) { return 200, `{}` }
	if it, err := st.Get(t.Context(), "t", thing("a", "")); err != nil || it.Exists() {
		t.Errorf("%s %v", it.Raw(), err)
	}
	if _, err := st.Get(t.Context(), "t", sluice.Item{}); !sluice.IsPermanent(err) || len(s.calls) != 2 {
		t.Errorf("without a key: %v", err)
	}
}

func TestReadsAreRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fails := 0
		s := tablesStub{}
		s.other = func(string) (int, string) {
			if fails++; fails%3 != 0 {
				return 400, refusal("ProvisionedThroughputExceededException")
			}
			return 200, `{}`
		}
		st := s.store(t, Options{Attempts: 3})
		if _, err := st.Get(t.Context(), "t", thing("a", "")); err != nil {
			t.Error(err)
		}
		if _, err := st.Query(t.Context(), dynamo.Query{Table: "t", Partition: item.String("p", "1")}); err != nil {
			t.Error(err)
		}
		for code, permanent := range map[string]bool{"ValidationException": true, "AccessDeniedException": false, "ThrottlingException": false} {
			s.other = func(string) (int, string) { return 400, refusal(code) }
			_, err := st.Get(t.Context(), "t", thing("a", ""))
			if err == nil || sluice.IsPermanent(err) != permanent || !strings.Contains(err.Error(), `dynamodb: table "t": GetItem at AWS in region us-east-1`) {
				t.Error(err)
			}
		}
	})
}
