package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/sinks/dynamodb"
)

// parseKey reads a key as plain JSON, {"pk":"1"}, or as DynamoDB has it,
// {"pk":{"S":"1"}}.
func parseKey(text string) (sluice.Item, error) {
	key, err := item.Parse([]byte(text))
	if err != nil {
		if key, err = item.FromJSON([]byte(text)); err != nil {
			return key, fmt.Errorf(`%w; want JSON such as '{"pk":"1"}'`, err)
		}
	}
	for name, v := range key.All() {
		if k := v.Kind(); k != item.S && k != item.N && k != item.B {
			return key, fmt.Errorf("attribute %q cannot be part of a key: want a text or a number", name)
		}
	}
	if key.Len() == 0 {
		return key, fmt.Errorf(`no attribute is in it; want JSON such as '{"pk":"1"}'`)
	}
	return key, nil
}

// readItem reads an item, consistently, and returns its key in the order of the
// table's schema; a missing item is the absent Item.
func readItem(ctx context.Context, cfg aws.Config, table string, key sluice.Item) (it, ordered sluice.Item, err error) {
	d, err := describeTable(ctx, cfg, table)
	if err != nil {
		return it, key, err
	}
	names := keyNames(d)
	if ordered = key.Only(names...); ordered.Len() != len(names) || key.Len() != len(names) {
		return it, key, usage("--key: %s is no key of table %s: want %s", keyText(key), table, strings.Join(names, " and "))
	}
	store, err := dynamodb.New(cfg, dynamodb.Options{})
	if err != nil {
		return it, key, err
	}
	it, err = store.Get(ctx, table, ordered)
	return it, ordered, err
}

// itemEvent parses the event name for an item's record.
func itemEvent(name string) (sluice.EventName, error) {
	event := sluice.EventName(strings.ToUpper(name))
	if !slices.Contains([]sluice.EventName{sluice.Insert, sluice.Modify, sluice.Remove, sluice.Snapshot}, event) {
		return "", usage("--event: %q is not one of INSERT, MODIFY, REMOVE, SNAPSHOT", name)
	}
	return event, nil
}

// recordOf is the record that an item, as it is now, could be of.
func recordOf(event sluice.EventName, region, table string, key, it sluice.Item) *sluice.Record {
	change := map[string]any{"Keys": json.RawMessage(key.Raw()), "StreamViewType": "NEW_AND_OLD_IMAGES"}
	if event != sluice.Remove {
		change["NewImage"] = json.RawMessage(it.Raw())
	}
	if (event == sluice.Modify || event == sluice.Remove) && it.Exists() {
		change["OldImage"] = json.RawMessage(it.Raw())
	}
	arn := "arn:aws:dynamodb:" + region + ":000000000000:table/" + table
	if event != sluice.Snapshot {
		arn += "/stream/now"
		change["SequenceNumber"] = "100000000000000000001"
		change["ApproximateCreationDateTime"] = time.Now().Unix()
	}
	raw, err := json.Marshal(map[string]any{
		"eventID": "now", "eventName": event, "eventVersion": "1.1", "eventSource": "aws:dynamodb",
		"awsRegion": region, "eventSourceARN": arn, "dynamodb": change,
	})
	if err != nil {
		panic(err) // texts, and items that were valid
	}
	return sluice.DecodeRecord(raw)
}
