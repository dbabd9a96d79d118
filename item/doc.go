// Package item reads DynamoDB-JSON attribute maps in place.
//
// An [Item] is the bytes of one map, {"pk":{"S":"x"},"n":{"N":"1"}}, checked
// once when it is made. Everything else is read out of those bytes when it is
// asked for: one attribute ([Item.Lookup]), all of them ([Item.All]), a Go
// struct ([Item.Decode]), plain JSON ([Item.AppendJSON]).
//
// # What is refused
//
// Anything but JSON; invalid UTF-8 and escapes of lone surrogates; an
// attribute with no, an unknown or more than one type tag; a name that occurs
// twice in one map, however it is escaped; numbers that DynamoDB does not
// hold (more than 38 significant digits, magnitude outside 1E-130 to
// 9.99E+125); binary that is not padded standard base64; a NULL that is not
// true or false; maps and lists nested deeper than 32. The error is a
// [*SyntaxError] with attribute path and byte offset. Empty sets and sets with
// equal members pass: published events hold them.
package item
