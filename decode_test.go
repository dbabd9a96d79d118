package sluice_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/benchdata"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/item"
)

func fixture(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/events/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// summary is what a record says, in one line.
func summary(r *sluice.Record) string {
	created := "-"
	if !r.Created.IsZero() {
		created = r.Created.Format(time.RFC3339Nano)
	}
	return fmt.Sprintf("%s %s %s %s %s %s %s %d ttl=%v %s old=%s new=%s",
		r.EventID, r.EventName, r.Table, r.Region, r.Sequence, created, r.ViewType, r.SizeBytes, r.IsTTL(),
		r.Keys.AppendJSON(nil), r.Old.AppendJSON(nil), r.New.AppendJSON(nil))
}

func checkPage(t *testing.T, page sluice.Page, want ...string) {
	t.Helper()
	if len(page.Records) != len(want) {
		t.Fatalf("%d records, wanted %d", len(page.Records), len(want))
	}
	for i := range want {
		r := &page.Records[i]
		if r.Err() != nil {
			t.Errorf("record %d: %v", i, r.Err())
		}
		if got := summary(r); got != want[i] {
			t.Errorf("record %d is\n%s\nwanted\n%s", i, got, want[i])
		}
		if !json.Valid(r.Raw()) || r.Raw()[0] != '{' {
			t.Errorf("record %d: raw is %s", i, r.Raw())
		}
	}
}

// Events in the shapes that AWS and others publish.
func TestDecodeEvent(t *testing.T) {
	page, err := sluice.DecodeEvent(fixture(t, "lambda.json"))
	if err != nil {
		t.Fatal(err)
	}
	checkPage(t, page,
		`0f1e2d3c4b5a69788796a5b4c3d2e1f0 INSERT Man-hunt.1 eu-west-1 1405400000000002063282832 2024-05-01T10:20:30Z NEW_AND_OLD_IMAGES 154 ttl=false `+
			`{"PK":"a271244","SK":"search"} old=null new={"PK":"a271244","SK":"search","entityType":"search","digest":"AP9//w==","digests":["AAEC","AwQF","AAEC"],"steps":[],`+
			`"metadata":{"empty":[],"list":["call","text",2.50],"done":false,"waits":[0,1200,300],"nothing":null,"tags":["night","day"],"raw":"test"}}`,
		`1f1e2d3c4b5a69788796a5b4c3d2e1f1 REMOVE Man-hunt.1 eu-west-1 1405400000000002063282832 2024-05-01T10:20:30.123456789Z OLD_IMAGE 54 `+
			`ttl=true {"PK":"a271244","SK":"search"} old={"PK":"a271244","SK":"search","entityType":"search"} new=null`)
	if page.State != nil || page.NextShardIterator != "" {
		t.Error("a plain event has a window or an iterator")
	}
	if v, _ := page.Records[0].New.Lookup("metadata.raw"); string(v.Bytes()) != "\xb5\xeb\x2d" {
		t.Errorf("binary is %x", v.Bytes())
	}

	if page, err = sluice.DecodeEvent(fixture(t, "pipes.json")); err != nil {
		t.Fatal(err)
	}
	checkPage(t, page,
		`1 INSERT Source us-west-2 42600004062755084192341 - NEW_AND_OLD_IMAGES 26 ttl=false {"Id":101} old=null new={"Message":"first","Id":101}`,
		`2 MODIFY  us-west-2 42600004062755084192348 - NEW_AND_OLD_IMAGES 59 ttl=false {"Id":101} old={"Message":"first","Id":101} new={"Message":"second","Id":101}`)

	if page, err = sluice.DecodeEvent(fixture(t, "window.json")); err != nil {
		t.Fatal(err)
	}
	checkPage(t, page, `1 INSERT  us-east-1 42600004062755084192341 - NEW_IMAGE 26 ttl=false {"Id":101} old=null new={"Message":"first","Id":101}`)
	if string(page.State) != `{ "1": "state \u00e9", "n": 1.50 }` {
		t.Errorf("the state is %s", page.State)
	}
}

func TestDecodeEventEmpty(t *testing.T) {
	for _, in := range []string{`{"Records":[]}`, `[]`, ` [ ] `, `{ "Records" : [ ] }`} {
		page, err := sluice.DecodeEvent([]byte(in))
		if err != nil || len(page.Records) != 0 {
			t.Errorf("%s: %v", in, err)
		}
	}
	page, err := sluice.DecodeEvent([]byte(`{"state":{},"Records":[],"window":{"start":"a"}}`))
	if err != nil || string(page.State) != "{}" {
		t.Errorf("%s %v", page.State, err)
	}
}

func TestDecodeGetRecords(t *testing.T) {
	src := sluice.Source{StreamARN: "arn:aws:dynamodb:us-east-1:123456789012:table/T/stream/2024-05-01T00:00:00.000", ShardID: "shard-1"}
	page, err := sluice.DecodeGetRecords(fixture(t, "getrecords.json"), src)
	if err != nil {
		t.Fatal(err)
	}
	checkPage(t, page, `d4e1 REMOVE T us-east-1 000000000000000000003 2024-05-01T10:20:00Z NEW_AND_OLD_IMAGES 3 ttl=true {"PK":"a"} old={"PK":"a"} new=null`)
	if r := page.Records[0]; r.StreamARN != src.StreamARN || r.ShardID != src.ShardID {
		t.Errorf("from %s %s", r.StreamARN, r.ShardID)
	}
	if want := src.StreamARN + "|1|AAAAAAAAAAEvJp6D/zaQ"; page.NextShardIterator != want {
		t.Errorf("iterator %s", page.NextShardIterator)
	}
	for _, in := range []string{`{"Records":[]}`, `{"Records":[],"NextShardIterator":null}`, `{"NextShardIterator":"","Records":[]}`} {
		if page, err := sluice.DecodeGetRecords([]byte(in), src); err != nil || page.NextShardIterator != "" || len(page.Records) != 0 {
			t.Errorf("%s: %+v %v", in, page, err)
		}
	}
	for _, in := range []string{`{}`, `{"NextShardIterator":"x"}`, `[]`, `null`, ``, `{"__type":"ExpiredIteratorException"}`} {
		if _, err := sluice.DecodeGetRecords([]byte(in), src); err == nil || !strings.Contains(err.Error(), "GetRecords") {
			t.Errorf("%s: %v", in, err)
		}
	}
}

// DecodeEvent names the kind of an event that is no batch of stream records.
func TestDecodeEventRefuses(t *testing.T) {
	single := string(recordtest.JSON(recordtest.Spec{}))
	for _, tt := range []struct {
		in, want string
		offset   int
	}{
		{string(fixture(t, "onfailure.json")), "on-failure destination record", 0},
		{`{"KinesisBatchInfo":{}}`, "on-failure destination record of a Kinesis stream", 0},
		{string(fixture(t, "kinesis.json")), "of a Kinesis stream (aws:kinesis)", 21},
		{string(fixture(t, "getrecords.json")), "DecodeGetRecords", 0},
		{single, "DecodeRecord", 0},
		{`{"Records":[{"messageId":"1","body":"{}","eventSource":"aws:sqs"}]}`, "aws:sqs", 12},
		{`{"Records":[{"EventSource":"aws:sns","Sns":{}}]}`, "aws:sns", 12},
		{`{"Records":[{"eventSource":"aws:s3","s3":{}}]}`, "aws:s3", 12},
		{`{"Records":[{"eventSource":"custom:x"}]}`, `"custom:x"`, 12},
		{`[{"eventSource":"aws:sqs"}]`, "aws:sqs", 1},
		{`{"state":{"1":2},"batchItemFailures":[]}`, "answer of a function", 0},
		{`{"version":"0","detail-type":"x","detail":{}}`, "EventBridge event", 0},
		{`{}`, "an empty object", 0},
		{`{"a":1,"b":2}`, "members a, b", 0},
		{`{"Records":null}`, "Records is not an array but null", 11},
		{`{"Records":{}}`, "Records is not an array", 11},
		{`{"Records":"x"}`, "a JSON string", 11},
		{`null`, "null", 0}, {`true`, "a boolean", 0}, {`"x"`, "a JSON string", 0}, {`1`, "a number", 0},
		{``, "empty", 0}, {`  `, "empty", 2}, {`<xml/>`, "no JSON", 0},
		{"\uFEFF" + `{"Records":[]}`, "it is text behind a byte order mark (the bytes EF BB BF)", 0},
		{`{"Records":[]}x`, "data after", 14}, {`[] []`, "data after", 3},
		{`{"Records":[],"Records":[]}`, "duplicate member Records", 14},
		{`{"Records":[]`, "unexpected end", 13}, {`{"Records":[`, "a record is expected", 12}, {`[`, "a record is expected", 1},
		{`{"Records":[],}`, "name expected", 14}, {`{"Records" []}`, "missing colon", 11},
		{`{"Records":[],"x":tru}`, "invalid value", 18}, {"{\"Records\":[],\"x\":\"\xff\"}", "UTF-8", 19},
		{`{"Records":[],"x":` + strings.Repeat("[", 10001) + strings.Repeat("]", 10001) + `}`, "too deep", 10018},
		{`{"Records":[` + single + ` ` + single + `]}`, "missing comma", 13 + len(single)},
		{`{"Records":[` + single + `,]}`, "a record is expected", 13 + len(single)},
		{`{"Records":[` + single[:len(single)-1] + `]}`, "missing comma", 12 + len(single) - 1},
		{`{"Records":[` + single + `}]}`, "missing comma", 12 + len(single)},
	} {
		page, err := sluice.DecodeEvent([]byte(tt.in))
		var e *sluice.EnvelopeError
		if !errors.As(err, &e) || page.Records != nil {
			t.Errorf("%.100s: %v", tt.in, err)
		} else if !strings.Contains(e.Msg, tt.want) || e.Offset != tt.offset {
			t.Errorf("%.100s\nis refused at %d: %s\nwanted         %d: %s", tt.in, e.Offset, e.Msg, tt.offset, tt.want)
		}
	}
}

func TestDecodeIgnoresUnknownMembers(t *testing.T) {
	in := strings.ReplaceAll(string(recordtest.JSON(recordtest.Spec{Sequence: recordtest.Sequence(7)})), `"eventVersion"`,
		`"extra":{"a":[1,-2.5e3,"\u00e9",true,null,{}]},"extra":[],"event\u0056ersion"`)
	in = strings.Replace(in, `"Keys"`, `"more":[[[]]],"Keys"`, 1)
	page, err := sluice.DecodeEvent([]byte(`{"other":{"Records":1},"Records":[` + in + `],"last":0}`))
	if err != nil || page.Records[0].Err() != nil || page.Records[0].Sequence != recordtest.Sequence(7) {
		t.Errorf("%v %v", err, page.Records)
	}
}

func TestDecodeRecord(t *testing.T) {
	lambda := recordtest.JSON(recordtest.Spec{Sequence: recordtest.Sequence(5), ID: "x", Old: `{"pk":{"S":"a"}}`, TTL: true})
	r := sluice.DecodeRecord([]byte(" \n" + string(lambda) + "\r\n"))
	if r.Err() != nil || r.Sequence != recordtest.Sequence(5) || !r.IsTTL() || string(r.Raw()) != string(lambda) || r.Table != "test" {
		t.Errorf("%v %s", r.Err(), summary(r))
	}
	api := strings.NewReplacer(`"type"`, `"Type"`, `"principalId"`, `"PrincipalId"`).Replace(string(lambda))
	if r = sluice.DecodeRecord([]byte(api)); r.Err() != nil || !r.IsTTL() {
		t.Errorf("%v %s", r.Err(), summary(r))
	}
	snapshot := `{"eventName":"SNAPSHOT","dynamodb":{"Keys":{"pk":{"S":"a"}},"NewImage":{"pk":{"S":"a"}}}}`
	if r = sluice.DecodeRecord([]byte(snapshot)); r.Err() != nil || r.EventName != sluice.Snapshot || r.Sequence != "" {
		t.Errorf("%v %s", r.Err(), summary(r))
	}
	for _, in := range []string{``, ` `, `{`, string(lambda) + "x", string(lambda) + string(lambda), `[` + string(lambda) + `]`, `{"eventSource":"aws:sqs"}`} {
		if r := sluice.DecodeRecord([]byte(in)); r == nil || !sluice.IsPermanent(r.Err()) || string(r.Raw()) != in {
			t.Errorf("%s: %+v", in, r)
		}
	}
}

// A member that is missing or null is empty. Two such records stay different.
func TestDecodeMissingMembers(t *testing.T) {
	for _, in := range []string{
		`{"eventName":"INSERT","dynamodb":{"SequenceNumber":"42600004062755084192341","Keys":{"pk":{"S":"a"}}}}`,
		`{"eventID":null,"eventName":"INSERT","eventVersion":null,"eventSource":null,"awsRegion":null,"userIdentity":null,"eventSourceARN":null,` +
			`"dynamodb":{"ApproximateCreationDateTime":null,"NewImage":null,"OldImage":null,"SequenceNumber":"42600004062755084192341","SizeBytes":null,"StreamViewType":null,"Keys":{"pk":{"S":"a"}}}}`,
	} {
		page, err := sluice.DecodeEvent([]byte(`[` + in + `,` + strings.ReplaceAll(in, "42600004062755084192341", "42600004062755084192348") + `]`))
		if err != nil {
			t.Fatal(err)
		}
		checkPage(t, page,
			` INSERT   42600004062755084192341 -  0 ttl=false {"pk":"a"} old=null new=null`,
			` INSERT   42600004062755084192348 -  0 ttl=false {"pk":"a"} old=null new=null`)
	}
}

func TestDecodeTimes(t *testing.T) {
	for in, want := range map[string]string{
		`1714558830`:                        "2024-05-01T10:20:30Z",
		`1714558830.0`:                      "2024-05-01T10:20:30Z",
		`1714558830.348366`:                 "2024-05-01T10:20:30.348366Z",
		`1.714558830E9`:                     "2024-05-01T10:20:30Z",
		`1.714558830123456789E9`:            "2024-05-01T10:20:30.123456789Z",
		`1.714558830123456789987654321e+9`:  "2024-05-01T10:20:30.123456789Z",
		`17145588301234567899876543210E-19`: "2024-05-01T10:20:30.123456789Z",
		`0.001714558830e12`:                 "2024-05-01T10:20:30Z",
		`"1714558830.5"`:                    "2024-05-01T10:20:30.5Z",
		`"2024-05-01T10:20:30Z"`:            "2024-05-01T10:20:30Z",
		`"2024-05-01T12:20:30.25+02:00"`:    "2024-05-01T10:20:30.25Z",
		`"2024-05-01T10:20:30.5"`:           "2024-05-01T10:20:30.5Z",
		`1714558830348`:                     "2024-05-01T10:20:30.348Z",
		`1714558830348366`:                  "2024-05-01T10:20:30.348366Z",
		`1714558830348366123`:               "2024-05-01T10:20:30.348366123Z",
		`0`:                                 "1970-01-01T00:00:00Z",
		`1e-3`:                              "1970-01-01T00:00:00.001Z",
		`1e-300`:                            "1970-01-01T00:00:00Z",
		`99999999999`:                       "5138-11-16T09:46:39Z",
		`-1`:                                "", `1e30`: "", `""`: "", `"x"`: "", `true`: "", `[]`: "", `"-5"`: "", `"0x10"`: "", `1e99999999999999999999`: "",
	} {
		rec := sluice.DecodeRecord([]byte(`{"eventName":"INSERT","dynamodb":{"ApproximateCreationDateTime":` + in + `,"SequenceNumber":"42600004062755084192341","Keys":{"pk":{"S":"a"}}}}`))
		if want == "" {
			if rec.Err() == nil || !strings.Contains(rec.Err().Error(), "is not a time") {
				t.Errorf("%s: %v %v", in, rec.Created, rec.Err())
			}
		} else if got := rec.Created.Format(time.RFC3339Nano); rec.Err() != nil || got != want {
			t.Errorf("%s is %s (%v), wanted %s", in, got, rec.Err(), want)
		}
	}
}

// A page of records differs from the records alone in nothing.
func TestDecodePageAgainstSingle(t *testing.T) {
	for _, kind := range []benchdata.Kind{benchdata.Modify, benchdata.KeysOnly, benchdata.Large} {
		page, err := sluice.DecodeEvent(benchdata.Event(kind, 50))
		if err != nil || len(page.Records) != 50 {
			t.Fatal(err)
		}
		for i := range page.Records {
			alone := sluice.DecodeRecord(kind(i))
			if got, want := summary(&page.Records[i]), summary(alone); got != want || alone.Err() != nil {
				t.Errorf("record %d is\n%s\nalone\n%s", i, got, want)
			}
		}
	}
}

// Records of one page may differ in order and choice of members; what was seen
// of one must not show in the next.
func TestDecodePageOfManyShapes(t *testing.T) {
	choices := func(values ...string) []string { return values }
	object := func(rng *rand.Rand, members map[string][]string) string {
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(members)) {
			if v := members[name][rng.IntN(len(members[name]))]; v != "" {
				parts = append(parts, `"`+name+`":`+[]string{"", "", "", " "}[rng.IntN(4)]+v+[]string{"", "", "", " "}[rng.IntN(4)])
			}
		}
		if rng.IntN(2) == 0 {
			rng.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var records []string
		for range 20 {
			change := object(rng, map[string][]string{
				"ApproximateCreationDateTime": choices(`1714558830`, `1714558830`, `171455883`, `1714558830.5`, `1.71455883e9`, ``, `null`, `"1714558830"`, `"x"`),
				"Keys":                        choices(`{"pk":{"S":"a"}}`, `{"pk":{"S":"b"}}`),
				"NewImage":                    choices(`{"a":{"N":"1"}}`, `{"a":{"N":"12"}}`, ``, `{"a":{"Q":"1"}}`),
				"SequenceNumber":              choices(`"28902000000000058232616929"`, `"977119800000398701107540001"`, `"8935985800002395190001559217"`),
				"SizeBytes":                   choices(`1`, `12`, ``),
				"StreamViewType":              choices(`"NEW_IMAGE"`, `"KEYS_ONLY"`, ``, `null`),
				"more":                        choices(``, `1`, `12`, `"1"`, `[1]`, `{"a":[]}`),
			})
			records = append(records, object(rng, map[string][]string{
				"eventID":        choices(`"x"`, `"y"`, ``),
				"eventName":      choices(`"MODIFY"`, `"INSERT"`),
				"eventSource":    choices(`"aws:dynamodb"`, `"aws:dynamodb"`, ``),
				"eventVersion":   choices(`"1.1"`, `"1.1"`, `"1.10"`, `1`, `11`),
				"awsRegion":      choices(`"us-east-1"`, `"us-east-2"`, `"us\u002deast-1"`, ``, `null`),
				"eventSourceARN": choices(`"arn:x:table/A/stream/1"`, `"arn:x:table/B/stream/1"`, ``),
				"userIdentity":   choices(``, ``, `null`, `{"type":"Service","principalId":"p"}`),
				"dynamodb":       choices(change),
			}))
		}
		in := "[" + strings.Join(records, ",") + "]"
		page, err := sluice.DecodeEvent([]byte(in))
		if err != nil || len(page.Records) != len(records) {
			t.Fatalf("%s: %v", in, err)
		}
		for i := range records {
			alone := sluice.DecodeRecord([]byte(records[i]))
			if got, want := summary(&page.Records[i]), summary(alone); got != want || fmt.Sprint(page.Records[i].Err()) != fmt.Sprint(alone.Err()) {
				t.Fatalf("record %d, %s, is\n%s %v\nalone\n%s %v", i, records[i], got, page.Records[i].Err(), want, alone.Err())
			}
		}
	}
}

func FuzzDecodeEvent(f *testing.F) {
	for _, name := range []string{"lambda.json", "pipes.json", "window.json", "getrecords.json", "onfailure.json", "kinesis.json"} {
		f.Add(fixture(f, name))
	}
	f.Add(benchdata.Event(benchdata.Modify, 2))
	f.Add([]byte(`{"Records":[null,{"dynamodb":{"Keys":{"a":{"S":"x\"]}"}},"SequenceNumber":"42600004062755084192341"}},{}]}`))
	f.Add([]byte(`[{"eventName":"MODIFY","dynamodb":{"SequenceNumber":"42600004062755084192341","Keys":{"a":{"N":"1"}},"NewImage":{"b":{"Q":[}]}}}}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		page, err := sluice.DecodeEvent(data)
		checkEnvelope(t, data, page, err)
		page, err = sluice.DecodeGetRecords(data, sluice.Source{StreamARN: "arn:x", ShardID: "s"})
		checkEnvelope(t, data, page, err)
		if rec := sluice.DecodeRecord(data); rec.Err() == nil && !json.Valid(data) {
			t.Fatalf("%q is taken for a record", data)
		}
	})
}

func checkEnvelope(t *testing.T, data []byte, page sluice.Page, err error) {
	if err != nil {
		var e *sluice.EnvelopeError
		if !errors.As(err, &e) || e.Offset < 0 || e.Offset > len(data) {
			t.Fatalf("%q: %v", data, err)
		}
		return
	}
	bad := false
	for i := range page.Records {
		r := &page.Records[i]
		if r.Err() != nil {
			bad = true
			var e *item.SyntaxError
			if errors.As(r.Err(), &e) && (e.Offset < 0 || e.Offset > len(r.Raw())) {
				t.Fatalf("%q: %+v", data, e)
			}
			continue
		}
		alone := sluice.DecodeRecord(r.Raw())
		if got, want := summary(r), summary(alone); got != want && r.StreamARN == alone.StreamARN {
			t.Fatalf("%q: record %d is\n%s\nalone\n%s", data, i, got, want)
		}
		if alone.Err() != nil || alone.Sequence != r.Sequence || !alone.New.Equal(r.New) || !alone.Keys.Equal(r.Keys) {
			t.Fatalf("%q: record %d alone: %v", data, i, alone.Err())
		}
	}
	if !bad && !json.Valid(data) {
		t.Fatalf("%q is no JSON but decoded without an error", data)
	}
}
