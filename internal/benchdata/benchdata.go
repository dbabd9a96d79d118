// Package benchdata makes the stream records that benchmarks run over.
//
// Records of one kind differ in keys, positions and a few values, so that
// nothing is fast merely because it has just been seen.
package benchdata

import (
	"fmt"
	"strings"
	"time"
)

// ARN is the stream of all records.
const ARN = "arn:aws:dynamodb:us-east-1:123456789012:table/manhunt/stream/2024-05-01T10:20:30.456"

// made is when the records were made: a projection reads the item of a record that
// is older than a day.
var made = time.Now().Add(-time.Hour).Unix()

// EntityTypes are the values of entityType that records take turns with.
var EntityTypes = []string{"search", "searchAttempt", "contact", "contactMethod", "incident"}

// Kind makes records of one kind.
type Kind func(i int) []byte

// record wraps the "dynamodb" member into a record as Lambda hands it over.
func record(i int, name, images, viewType string, size int) []byte {
	return fmt.Appendf(nil, `{"eventID":"%032x","eventName":"%s","eventVersion":"1.1","eventSource":"aws:dynamodb","awsRegion":"us-east-1",`+
		`"dynamodb":{"ApproximateCreationDateTime":%d,%s,"SequenceNumber":"89359858%020d","SizeBytes":%d,"StreamViewType":"%s"},"eventSourceARN":"%s"}`,
		uint64(i)*0x9e3779b97f4a7c15, name, made+int64(i/100), images, 2_395_190_001_559_217+i, size, viewType, ARN)
}

func keys(i int) string {
	return fmt.Sprintf(`{"PK":{"S":"%07x"},"SK":{"S":"%07x"}}`, i*7919%0xfffffff, i*104729%0xfffffff)
}

// image is an item of 25 attributes in about 850 bytes.
func image(i, version int) string {
	return fmt.Sprintf(`{"PK":{"S":"%07x"},"SK":{"S":"%07x"},"GSI1PK":{"S":"%07x"},"version":{"N":"%d"},"name":{"S":"Zavier Curtis %d"},`+
		`"status":{"S":"active"},"order":{"N":"%d"},"enabled":{"BOOL":true},"waitSeconds":{"N":"1200"},"amount":{"N":"%d.%02d"},`+
		`"note":{"S":"call back after 9 am"},"entityType":{"S":"%s"},"created":{"S":"2024-05-01T10:%02d:14Z"},"deleted":{"NULL":true},`+
		`"method":{"M":{"type":{"S":"email"},"to":{"S":"z%d@example.com"},"n":{"N":"1"}}},"steps":{"L":[{"N":"1"},{"S":"two"},{"N":"3"}]},`+
		`"tags":{"SS":["blue","green"]},"codes":{"NS":["1","2","35"]},"hash":{"B":"AAEqQUJDREU="},"a1":{"S":"x%d"},"a2":{"N":"%d"},`+
		`"a3":{"BOOL":false},"lang":{"S":"en"},"zone":{"S":"us-east-1b"},"ttl":{"N":"1714990000"}}`,
		i*7919%0xfffffff, i*104729%0xfffffff, i*31%0xfffffff, version, i%1000, i%9, i%5000, i%100,
		EntityTypes[i%len(EntityTypes)], i%60, i%1000, i%77, i)
}

// Item is the item with key i in its nth version, in 1.44 KB: the attributes of
// Modify's images and six longer texts. No two versions are equal.
func Item(i, version int) []byte {
	b := []byte(image(i, version))
	b = b[:len(b)-1]
	for n := range 6 {
		b = fmt.Appendf(b, `,"text%d":{"S":"Item %d was looked for again, for the %dth time: nobody answered the telephone, and the letter came back too."}`, n, i, version)
	}
	return append(b, '}')
}

// Modify is a MODIFY of 1.5 KB of images: both, with 25 attributes each.
func Modify(i int) []byte {
	return record(i, "MODIFY", fmt.Sprintf(`"Keys":%s,"NewImage":%s,"OldImage":%s`, keys(i), image(i, 2), image(i, 1)), "NEW_AND_OLD_IMAGES", 1500)
}

// KeysOnly is an INSERT of a KEYS_ONLY stream.
func KeysOnly(i int) []byte {
	return record(i, "INSERT", `"Keys":`+keys(i), "KEYS_ONLY", 26)
}

// Large is an INSERT of 50 KB: long texts, some not ASCII, and a list of maps.
func Large(i int) []byte {
	var sb strings.Builder
	fmt.Fprintf(&sb, `"Keys":%s,"NewImage":{"entityType":{"S":"contact"},"text":{"S":"%s"},"lines":{"L":[`, keys(i),
		strings.Repeat("The quick brown fox jumps over the lazy dog. \\\"Grüße aus Köln\\\" \\n", 250))
	for n := range 300 {
		if n > 0 {
			sb.WriteByte(',')
		}
		fmt.Fprintf(&sb, `{"M":{"id":{"S":"%08x"},"qty":{"N":"%d"},"label":{"S":"line item number %d of order"}}}`, n*7919, n%9, n)
	}
	sb.WriteString("]}}")
	return record(i, "INSERT", sb.String(), "NEW_IMAGE", 50000)
}

// Event is a Lambda event of n records of one kind.
func Event(k Kind, n int) []byte { return event(k, n, "]}") }

// GetRecords is the body of a GetRecords answer with n records of one kind,
// without the stream's ARN, which the service does not answer.
func GetRecords(k Kind, n int) []byte {
	b := event(k, n, `],"NextShardIterator":"`+ARN+`|1|AAAAAAAAAAEvJp6D+zaQ..."}`)
	return []byte(strings.ReplaceAll(string(b), `,"eventSourceARN":"`+ARN+`"`, ""))
}

func event(k Kind, n int, tail string) []byte {
	b := []byte(`{"Records":[`)
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, k(i)...)
	}
	return append(b, tail...)
}
