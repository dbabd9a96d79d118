// Package writer creates, updates and deletes the documents of Meadowlark's
// table so that references between them hold, without locks: what must not
// happen at the same time are writes to one item, and each change is one
// transaction.
//
// A document that others may refer to has a guard beside it, which counts them;
// one that is a kind of something, as a School is an EducationOrganization, has
// a second count under that name. A reference is a pair of items, one to be
// found from either end. Who refers adds to the count, on condition that it is
// there; who deletes takes it away, on condition that it is 0. Of a create and a
// delete that contradict each other one fails.
//
//	TYPE#Ed-Fi#3.3.1-b#School                 ID#<school>          the document
//	TYPE#Ed-Fi#3.3.1-b#School                 REFC#ID#<school>     its guard
//	TYPE#Ed-Fi#3.3.1-b#EducationOrganization  ASSIGN#ID#<school>   its name as that
//	FREF#ID#<course>                          TREF#ID#<school>     what the course refers to
//	TREF#ID#<school>                          FREF#ID#<course>     who refers to the school
//
// [Answer] says what an HTTP API is to make of an error.
package writer
