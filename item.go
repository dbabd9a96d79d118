package sluice

import "github.com/sluicehq/sluice/item"

// Item is one DynamoDB attribute map over raw bytes; see package item.
type Item = item.Item
