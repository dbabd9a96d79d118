// Package docversion gives the changes of an item an order, and their documents
// versions that follow it.
package docversion

import (
	"fmt"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/docrules"
)

// AWS says only that a sequence number has 21 to 40 digits and grows
// (https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_streams_Record.html).
// Numbers of another stream of the table begin anew. So the order of an item's
// changes is: first the creation time of the stream, then the number.
//
// The version of a document has 63 bits and is less precise:
//
//	31 bits  second at which the stream was made, from 2015 to 2083
//	 4 bits  digits of the number: fewer than 20, 20 to 33, or more
//	22 bits  its first seven digits, as a share of all such numbers
//	 6 bits  zero: room for the sink, which writes by if_seq_no
//
// A later change never has a lower version. Numbers that AWS wrote from 2019 to
// 2025 have 23 to 28 digits: changes of an item within a few seconds have the same
// version, and the sink compares all digits.
const (
	shareBits = 22
	tieBits   = docrules.TieBits

	leading     = 1_000_000 // least number of seven digits
	fewDigits   = 20
	manyDigits  = 34
	mostSeconds = 1<<31 - 1
)

var firstStreams = time.Date(2015, 1, 1, 0, 0, 0, 0, time.UTC)

// Backfilled is the version of a backfilled item. It comes before all records.
const Backfilled = 1

// Repaired is appended to the sequence of a document that a backfill had to write
// again. It sorts after the change that the document showed, and before all later
// ones.
const Repaired = "+"

// BeforeAll is the sequence of a backfilled item.
var BeforeAll = Generation{label: "00000000T000000.000"}.Sequence("")

// Generation is one stream of a table.
type Generation struct {
	ARN   string
	label string // of the stream, such as 20250704T123321.123: sorts by time
	made  int64  // seconds since firstStreams
}

// ParseGeneration returns the stream of that ARN.
func ParseGeneration(arn string) (*Generation, error) {
	_, label, _ := strings.Cut(arn, "/stream/")
	made, err := time.Parse("2006-01-02T15:04:05", label) // also accepts a fraction
	if err != nil {
		return nil, fmt.Errorf("the record is of the stream %q, and version by sequence goes by the time at its end, as in arn:aws:dynamodb:eu-west-1:111122223333:table/orders/stream/2025-07-04T12:33:21.123", arn)
	}
	return &Generation{
		ARN:   arn,
		label: made.Format(labelForm),
		made:  secondsOf(made),
	}, nil
}

// labelForm is the form of a label in a sequence.
const labelForm = "20060102T150405.000"

func secondsOf(made time.Time) int64 {
	return min(max(int64(made.Sub(firstStreams)/time.Second), 0), mostSeconds)
}

// Sequence is the place of a change, as sortable text: the label and number.Fence,
// in one allocation.
func (g Generation) Sequence(number sluice.Sequence) string {
	const zeros = "0000000000000000000000000000000000000000"
	return g.label + "-" + zeros[min(len(number), len(zeros)):] + string(number)
}

// Version is the short form of a change's place.
func (g Generation) Version(number sluice.Sequence) int64 {
	digits := strings.TrimLeft(string(number), "0")
	first := int64(0) // the first seven digits
	for i := range min(7, len(digits)) {
		first = 10*first + int64(digits[i]-'0')
	}
	const most = 1<<shareBits - 1
	size, share := int64(0), int64(most)
	switch n := len(digits); {
	case n <= 7:
		share = min(first, most) // an emulator's number may exceed most
	case n >= manyDigits:
		size = manyDigits - fewDigits + 1
	case n >= fewDigits:
		size, share = int64(n-fewDigits+1), (first-leading)<<shareBits/(9*leading)
	}
	return (g.made<<4|size)<<(shareBits+tieBits) | share<<tieBits
}

// Least returns the least version of a document whose mark has that sequence; 0 for
// a text that no change has. A document with a lower version was copied by another
// program, and an older change could overwrite it.
func Least(sequence string) int64 {
	sequence = strings.TrimRight(sequence, Repaired)
	if sequence == BeforeAll {
		return Backfilled
	}
	label, number, _ := strings.Cut(sequence, "-")
	made, err := time.Parse(labelForm, label)
	if err != nil || !sluice.Sequence(number).Valid() {
		return 0
	}
	return Generation{made: secondsOf(made)}.Version(sluice.Sequence(number))
}
