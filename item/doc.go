// Package item reads DynamoDB-JSON attribute maps in place.
//
// An [Item] is the bytes of one map, {"pk":{"S":"x"},"n":{"N":"1"}}. Parsing
// checks them once. Later calls read from these bytes: one attribute
// ([Item.Lookup]), all of them ([Item.All]), a Go struct ([Item.Decode]), or plain
// JSON ([Item.AppendJSON]).
//
// # Refused input
//
//   - Input that is not JSON; invalid UTF-8; escapes of lone surrogates.
//   - An attribute with no type tag, an unknown one, or more than one.
//   - A name that occurs twice in one map, in any escaping.
//   - A number that DynamoDB cannot hold: more than 38 significant digits, or a
//     magnitude outside 1E-130 to 9.99E+125.
//   - Binary that is not standard base64 with padding.
//   - A NULL that is neither true nor false.
//   - Maps and lists nested deeper than 32.
//
// The error is a [*SyntaxError] with the attribute path and the byte offset. Empty
// sets and sets with equal members pass, because published events contain them.
package item
