package sluice_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/item"
)

// One bad record leaves its neighbours alone and keeps its position and bytes.
func TestDecodeBadRecord(t *testing.T) {
	const head = `{"eventID":"bad","eventName":"INSERT","eventSource":"aws:dynamodb","dynamodb":{"SequenceNumber":"42600004062755084192341","Keys":{"pk":{"S":"a"}},`
	const tail = `},"eventSourceARN":"arn:aws:dynamodb:us-east-1:1:table/T/stream/x"}`
	good := string(recordtest.JSON(recordtest.Spec{Sequence: recordtest.Sequence(41), ID: "good"}))
	for _, tt := range []struct {
		in       string
		msg      string
		path     string // of an attribute
		offset   int    // of an attribute, in the record; 0: not looked at
		position bool   // the position is readable
	}{
		{head + `"NewImage":{"a":{"X":"y"}}` + tail, "unknown type tag", "dynamodb.NewImage.a", len(head) + 17, true},
		{head + `"OldImage":{"a":{"M":{"b":{"L":[{"S":"x","N":"1"}]}}}}` + tail, "more than one type tag", "dynamodb.OldImage.a.b.0", len(head) + 40, true},
		{head + `"NewImage":{"a":{"S":"` + "\xff" + `"}}` + tail, "invalid UTF-8", "dynamodb.NewImage.a", len(head) + 22, true},
		{head + `"NewImage":{"a":{"S":"\q"}}` + tail, "invalid escape", "dynamodb.NewImage.a", len(head) + 22, true},
		{head + `"NewImage":{"a":{"S":"x"},"a":{"S":"x"}}` + tail, "duplicate", "dynamodb.NewImage.a", len(head) + 26, true},
		{head + `"NewImage":{"a":{"N":"1E200"}}` + tail, "larger", "dynamodb.NewImage.a", len(head) + 21, true},
		{head + `"NewImage":[]` + tail, "attribute map", "dynamodb.NewImage", len(head) + 11, true},
		{head + `"NewImage":"x"` + tail, "attribute map", "dynamodb.NewImage", len(head) + 11, true},
		{head + `"NewImage":7` + tail, "attribute map", "dynamodb.NewImage", len(head) + 11, true},
		{head + `"NewImage":{"a":{"S":"x"}},"NewImage":{}` + tail, "duplicate member NewImage", "", 0, true},
		{head + `"ApproximateCreationDateTime":"yesterday"` + tail, "is not a time", "", 0, true},
		{head + `"ApproximateCreationDateTime":{}` + tail, "is not a time", "", 0, true},
		{head + `"SizeBytes":1.5` + tail, "invalid SizeBytes", "", 0, true},
		{head + `"SizeBytes":"1"` + tail, "invalid SizeBytes", "", 0, true},
		{head + `"x":tru` + tail, "invalid value", "", 0, true},
		{head + `"x":01` + tail, "missing comma", "", 0, false},
		{head + `"StreamViewType":5` + tail, "StreamViewType is not a string", "", 0, true},
		{strings.Replace(head, `"INSERT"`, `5`, 1) + `"x":1` + tail, "eventName is not a string", "", 0, true},
		{strings.Replace(head, `"INSERT"`, "\"\xff\"", 1) + `"x":1` + tail, "invalid UTF-8", "", 0, true},
		{strings.Replace(head, `"INSERT"`, `"INSERT","userIdentity":"x"`, 1) + `"x":1` + tail, "an object is expected", "", 0, true},
		{strings.Replace(head, `"INSERT"`, `"INSERT","userIdentity":{"type":[1]}`, 1) + `"x":1` + tail, "userIdentity.type is not a string", "", 0, true},
		{strings.Replace(head, `"INSERT"`, `"INSERT","userIdentity":{"type":"x","Type":"Service"}`, 1) + `"x":1` + tail, "duplicate member userIdentity.Type", "", 0, true},
		{strings.Replace(head, `"INSERT"`, `"INSERT","eventName":"REMOVE"`, 1) + `"x":1` + tail, "duplicate member eventName", "", 0, true},
		{strings.Replace(head, "INSERT", "UPSERT", 1) + `"x":1` + tail, `unknown eventName "UPSERT"`, "", 0, true},
		{strings.Replace(head, "INSERT", "SNAPSHOT", 1) + `"x":1` + tail, `unknown eventName "SNAPSHOT"`, "", 0, true},
		{strings.Replace(head, `"eventName":"INSERT",`, ``, 1) + `"x":1` + tail, "no eventName", "", 0, true},
		{strings.Replace(head, `"42600004062755084192341"`, `"4x2"`, 1) + `"x":1` + tail, `invalid SequenceNumber "4x2"`, "", 0, false},
		{strings.Replace(head, `"42600004062755084192341"`, `null`, 1) + `"x":1` + tail, "no SequenceNumber", "", 0, false},
		{strings.Replace(head, `"42600004062755084192341"`, `42600004062755084192341`, 1) + `"x":1` + tail, "SequenceNumber is not a string", "", 0, false},
		{strings.Replace(head, `"42600004062755084192341"`, `"42600004062755084192341","SequenceNumber":"42600004062755084192348"`, 1) + `"x":1` + tail, "duplicate member SequenceNumber", "", 0, false},
		{strings.Replace(head, `{"pk":{"S":"a"}}`, `{}`, 1) + `"x":1` + tail, "no Keys", "", 0, false},
		{strings.Replace(head, `{"pk":{"S":"a"}}`, `null`, 1) + `"x":1` + tail, "no Keys", "", 0, false},
		{strings.Replace(head, "aws:dynamodb", "aws:kinesis", 1) + `"x":1` + tail, "aws:kinesis", "", 0, true},
		{`{"eventID":"bad","eventSource":"aws:sqs","body":"{}"}`, "aws:sqs", "", 0, false},
		{`{"eventID":"bad","eventName":"INSERT"}`, `no member "dynamodb"`, "", 0, false},
		{`{"eventID":"bad","dynamodb":null}`, "no eventName", "", 0, false},
		{`{"eventID":"bad","dynamodb":[]}`, "an object is expected", "", 0, false},
		{`{}`, `no member "dynamodb"`, "", 0, false},
		{`null`, "this is null", "", 0, false},
		{`"x,]"`, "this is a JSON string", "", 0, false},
		{`5`, "this is a number", "", 0, false},
		{`[[],{"a":"]"}]`, "this is a bare array", "", 0, false},
	} {
		page, err := sluice.DecodeEvent([]byte(`{"Records":[` + good + `, ` + tt.in + ` ,` + good + `]}`))
		if err != nil || len(page.Records) != 3 {
			t.Errorf("%s: %v, %d records", tt.in, err, len(page.Records))
			continue
		}
		for _, i := range []int{0, 2} {
			if r := page.Records[i]; r.Err() != nil || r.Sequence != recordtest.Sequence(41) || string(r.Raw()) != good {
				t.Errorf("%s: neighbour %d: %v", tt.in, i, r.Err())
			}
		}
		r := &page.Records[1]
		if !sluice.IsPermanent(r.Err()) || !strings.Contains(r.Err().Error(), tt.msg) {
			t.Errorf("%s: error %v, wanted %s", tt.in, r.Err(), tt.msg)
		}
		if string(r.Raw()) != tt.in {
			t.Errorf("%s: raw is %s", tt.in, r.Raw())
		}
		if tt.position && (r.Sequence != "42600004062755084192341" || r.EventID != "bad" || r.Keys.Len() != 1 || r.Table != "T") {
			t.Errorf("%s: position is %s", tt.in, summary(r))
		}
		if tt.path != "" {
			var e *item.SyntaxError
			if !errors.As(r.Err(), &e) || e.Path != tt.path || e.Offset != tt.offset {
				t.Errorf("%s: error %+v, wanted %s at %d", tt.in, e, tt.path, tt.offset)
			}
		}
		if alone := sluice.DecodeRecord([]byte(tt.in)); !strings.Contains(tt.in, "SNAPSHOT") && tt.msg != "aws:sqs" && (alone.Err() == nil || alone.Err().Error() != r.Err().Error() || string(alone.Raw()) != tt.in) {
			t.Errorf("%s alone: %v", tt.in, alone.Err())
		}
	}
}

// Of two positions none is to be trusted; what is wrong in the bytes is located
// in the record.
func TestDecodeBadRecordDetails(t *testing.T) {
	for in, want := range map[string]string{
		`{"eventName":"INSERT","dynamodb":{"SequenceNumber":"42600004062755084192341","SequenceNumber":"42600004062755084192348","Keys":{"pk":{"S":"a"}}}}`:              "duplicate member SequenceNumber",
		`{"eventName":"INSERT","dynamodb":{"SequenceNumber":"42600004062755084192341"},"dynamodb":{"SequenceNumber":"42600004062755084192348","Keys":{"pk":{"S":"a"}}}}`: "duplicate member dynamodb",
		`{"eventName" "INSERT"}`:               "offset 13: missing colon",
		`{"eventName":"IN` + "\x01" + `SERT"}`: "offset 16: eventName: control character in string",
	} {
		page, err := sluice.DecodeEvent([]byte("[  " + in + "]"))
		if err != nil || !strings.HasSuffix(page.Records[0].Err().Error(), "undecodable record: "+want) || page.Records[0].Sequence != "" {
			t.Errorf("%s: %v %+v", in, err, page.Records)
		}
	}
}

// Room is made for as many records as the first one's size lets expect, but a
// tiny one that cannot be good must not cost a gigabyte.
func TestDecodeTinyFirstRecord(t *testing.T) {
	in := []byte(`[0,{"x":"` + strings.Repeat("x", 6<<20) + `"}]`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	page, err := sluice.DecodeEvent(in)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; err != nil || len(page.Records) != 2 || n > 32<<20 {
		t.Errorf("%d records (%v) for %d MB", len(page.Records), err, n>>20)
	}
}
