package dynamodb

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/item/sdkitem"
)

// operation is an Op in the types of the SDK. Missing parts are nil.
type operation struct {
	kind      dynamo.OpKind
	table     string
	key       map[string]types.AttributeValue // except of a Put
	item      map[string]types.AttributeValue // of a Put
	update    *string
	condition *string
	names     map[string]string
	values    map[string]types.AttributeValue
	size      int // approximate size in a request
}

// convert makes an operation from op. Its errors are permanent.
func convert(op dynamo.Op) (operation, error) {
	o := operation{kind: op.Kind, table: op.Table, update: given(op.Update), condition: given(op.Condition)}
	if op.Table == "" {
		return o, errors.New("no table is named")
	}
	switch op.Kind {
	case dynamo.PutOp:
		if !op.Item.Exists() {
			return o, errors.New("there is no item to put")
		}
		o.item = sdkitem.Map(op.Item)
	case dynamo.UpdateOp, dynamo.DeleteOp, dynamo.CheckOp:
		if op.Key.Len() == 0 {
			return o, errors.New("there is no key")
		}
		o.key = sdkitem.Map(op.Key)
	default:
		return o, fmt.Errorf("OpKind %d is none; make an Op with Put, Update, Delete or Check of package dynamo", op.Kind)
	}
	if op.Kind == dynamo.CheckOp && op.Condition == "" {
		return o, errors.New("a Check without a condition checks nothing")
	}
	o.size = len(op.Item.Raw()) + len(op.Key.Raw()) + len(op.Update) + len(op.Condition)
	if len(op.Names) > 0 {
		o.names = op.Names
		for placeholder, name := range op.Names {
			o.size += len(placeholder) + len(name)
		}
	}
	if len(op.Values) > 0 {
		o.values = make(map[string]types.AttributeValue, len(op.Values))
		for placeholder, v := range op.Values {
			av, size, err := value(v)
			if err != nil {
				return o, fmt.Errorf("value %s: %w", placeholder, err)
			}
			o.values[placeholder] = av
			o.size += len(placeholder) + size
		}
	}
	return o, nil
}

func given(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// value converts the value of a placeholder. It accepts only the types of
// dynamo.Op.Value: for others, such as a float64, the meaning would be a guess.
func value(v any) (_ types.AttributeValue, size int, _ error) {
	switch v := v.(type) {
	case nil:
		return &types.AttributeValueMemberNULL{Value: true}, 1, nil
	case string:
		return &types.AttributeValueMemberS{Value: v}, len(v), nil
	case bool:
		return &types.AttributeValueMemberBOOL{Value: v}, 1, nil
	case []byte:
		return &types.AttributeValueMemberB{Value: v}, len(v), nil
	case dynamo.Strings:
		size = len(v)
		for _, s := range v {
			size += len(s)
		}
		return &types.AttributeValueMemberSS{Value: v}, size, nil
	case json.Number:
		if err := validNumber(string(v)); err != nil {
			return nil, 0, err
		}
		return &types.AttributeValueMemberN{Value: string(v)}, len(v), nil
	case int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64:
		digits := fmt.Sprint(v)
		return &types.AttributeValueMemberN{Value: digits}, len(digits), nil
	case item.Value:
		av := sdkitem.Value(v)
		if av == nil {
			return nil, 0, errors.New("the Value is the zero Value, which is none; say nil for NULL")
		}
		return av, len(v.Raw()), nil
	case sluice.Item:
		if !v.Exists() {
			return nil, 0, errors.New("the Item is absent; say nil for NULL")
		}
		return &types.AttributeValueMemberM{Value: sdkitem.Map(v)}, len(v.Raw()), nil
	}
	return nil, 0, fmt.Errorf("no attribute is made of a %T; want a string, a whole number, a json.Number, a bool, a []byte, nil, a dynamo.Strings, a item.Value or a sluice.Item", v)
}

func validNumber(n string) error {
	if n == "" || strings.Trim(n, "0123456789+-.eE") != "" {
		return fmt.Errorf("%.50q is not the decimal form of a number", n)
	}
	if _, err := item.Parse([]byte(`{"N":{"N":"` + n + `"}}`)); err != nil {
		return fmt.Errorf("%.50q is no number that a table holds: %w", n, err)
	}
	return nil
}

// transacted returns o as part of a transaction. A failed condition returns the
// item.
func (o *operation) transacted() types.TransactWriteItem {
	const old = types.ReturnValuesOnConditionCheckFailureAllOld
	switch o.kind {
	case dynamo.PutOp:
		return types.TransactWriteItem{Put: &types.Put{
			TableName: &o.table, Item: o.item, ConditionExpression: o.condition,
			ExpressionAttributeNames: o.names, ExpressionAttributeValues: o.values, ReturnValuesOnConditionCheckFailure: old,
		}}
	case dynamo.UpdateOp:
		return types.TransactWriteItem{Update: &types.Update{
			TableName: &o.table, Key: o.key, UpdateExpression: o.update, ConditionExpression: o.condition,
			ExpressionAttributeNames: o.names, ExpressionAttributeValues: o.values, ReturnValuesOnConditionCheckFailure: old,
		}}
	case dynamo.DeleteOp:
		return types.TransactWriteItem{Delete: &types.Delete{
			TableName: &o.table, Key: o.key, ConditionExpression: o.condition,
			ExpressionAttributeNames: o.names, ExpressionAttributeValues: o.values, ReturnValuesOnConditionCheckFailure: old,
		}}
	default:
		return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
			TableName: &o.table, Key: o.key, ConditionExpression: o.condition,
			ExpressionAttributeNames: o.names, ExpressionAttributeValues: o.values, ReturnValuesOnConditionCheckFailure: old,
		}}
	}
}

// addition returns the Update for the additions to the item of a.
func addition(a *dynamo.Add, by map[string]int64) *types.Update {
	names := make(map[string]string, len(by)+1)
	values := make(map[string]types.AttributeValue, len(by))
	terms := make([]string, 0, len(by))
	for i, name := range slices.Sorted(maps.Keys(by)) {
		n := strconv.Itoa(i)
		terms = append(terms, "#"+n+" :"+n)
		names["#"+n] = name
		values[":"+n] = &types.AttributeValueMemberN{Value: strconv.FormatInt(by[name], 10)}
	}
	u := &types.Update{
		TableName: &a.Table, Key: sdkitem.Map(a.Key), UpdateExpression: new("ADD " + strings.Join(terms, ", ")),
		ExpressionAttributeNames: names, ExpressionAttributeValues: values,
	}
	if !a.Create {
		for name := range a.Key.All() {
			names["#k"] = name
			break
		}
		u.ConditionExpression = new("attribute_exists(#k)")
	}
	return u
}
