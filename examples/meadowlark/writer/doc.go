// Package writer creates, updates and deletes the documents of Meadowlark's table
// so that references between them hold, without locks. Conflicting changes write
// the same item, and each change is one transaction.
//
// A document to which others may refer has a guard beside it, with their number. A
// document that is a kind of something, as a School is an EducationOrganization,
// has a second count under that name. A reference is a pair of items, to be found
// from either end. A writer of a reference increments the count, on condition that
// it exists. A deletion removes the count, on condition that it is 0. Of a create
// and a delete that conflict, one fails.
//
//	TYPE#Ed-Fi#3.3.1-b#School                 ID#<school>          the document
//	TYPE#Ed-Fi#3.3.1-b#School                 REFC#ID#<school>     its guard
//	TYPE#Ed-Fi#3.3.1-b#EducationOrganization  ASSIGN#ID#<school>   its name as that
//	FREF#ID#<course>                          TREF#ID#<school>     what the course refers to
//	TREF#ID#<school>                          FREF#ID#<course>     who refers to the school
//
// [Answer] maps an error to an HTTP response.
package writer
