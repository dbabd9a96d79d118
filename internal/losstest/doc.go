// Package losstest tests that no change of a table is lost on its way into a
// search index, and none is undone, while the index' server is killed, refuses
// requests and responds too late. It has only tests.
package losstest
