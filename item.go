package sluice

import "github.com/sluicehq/sluice/item"

// Item is one DynamoDB attribute map over raw bytes; see package item.
type Item = item.Item

// Value is one typed attribute value of an Item; see package item.
type Value = item.Value
