package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/jsonscan"
	"github.com/sluicehq/sluice/item"
)

// ScanSource describes the table of a Scan response. The response itself does not.
type ScanSource struct {
	TableARN string
	TableID  string // distinguishes the table from an earlier one of the same name; may be empty
	Region   string
	Keys     []string // names of the key attributes, the partition key first
}

// ScanPage is one decoded Scan response.
type ScanPage struct {
	Records []sluice.Record // one per item, with the event name SNAPSHOT and the Origin Backfilled
	Last    sluice.Item     // LastEvaluatedKey; absent on the last page
	Scanned int             // items read, before any filter
	Units   float64         // read units consumed; 0 when the response does not say
}

// DecodeScan decodes the body of a DynamoDB Scan response. Each item becomes a
// record; [sluice.DecodeRecord] decodes the same record from its Raw. StreamARN is the
// table's ARN. The record has no sequence number and no time. Its EventID depends
// only on the table and the item's key: every read of the item gives the same id.
// Records do not alias data and share no text.
//
// An item that cannot be decoded stays in the page with [sluice.Record.Err] set.
// DecodeScan returns an error when data is not one complete Scan response.
func DecodeScan(data []byte, src ScanSource) (ScanPage, error) {
	d := scanDecoder{Reader: jsonscan.Reader{B: data}, src: src, count: -1}
	d.head = fmt.Appendf(nil, `","eventName":%q,"eventSource":"aws:dynamodb","awsRegion":%s,"eventSourceARN":%s,"dynamodb":{"Keys":`,
		sluice.Snapshot, quoted(src.Region), quoted(src.TableARN))
	if end := d.answer(jsonscan.Space(data, 0)); end >= 0 {
		if end = jsonscan.Space(data, end); end != len(data) {
			d.Fail(end, "data after the answer")
		}
	}
	if d.Err != nil {
		return ScanPage{}, fmt.Errorf("not a Scan answer: %w (offset %d)", d.Err, d.Off)
	}
	return d.page, nil
}

func quoted(s string) []byte {
	b, _ := json.Marshal(s) // a string never fails
	return b
}

// scanDecoder decodes one Scan response.
type scanDecoder struct {
	jsonscan.Reader // of the response
	src             ScanSource
	page            ScanPage
	count           int    // from the response; -1 when absent
	head            []byte // of a record's text, from the end of its id to its keys
	parser          item.Parser
	idText          []byte // memory for the text of an id
	idHead          int    // bytes of it that all ids share
}

// answer decodes the object at i.
func (d *scanDecoder) answer(i int) int {
	if i >= len(d.B) || d.B[i] != '{' {
		return d.Fail(i, "it is "+jsonscan.LooksLike(d.B, i))
	}
	start, seen := i, map[string]bool{}
	more, i := d.Open(i)
	for more {
		name, v := d.Name(i)
		if v < 0 {
			return v
		}
		member := string(name)
		if seen[member] {
			return d.Fail(i, fmt.Sprintf("duplicate member %.40q", member))
		}
		seen[member] = true
		switch member {
		case "Items":
			i = d.items(v)
		case "LastEvaluatedKey":
			i = d.last(v)
		case "ConsumedCapacity":
			i = d.units(v)
		case "Count":
			i = d.Skip(v)
			if n, err := strconv.Atoi(string(d.B[v:max(v, i)])); err == nil {
				d.count = n
			}
		case "ScannedCount":
			i = d.Skip(v)
			d.page.Scanned, _ = strconv.Atoi(string(d.B[v:max(v, i)])) // else the response has none
		default:
			i = d.Skip(v)
		}
		more, i = d.More(i)
	}
	switch {
	case i < 0:
	case d.page.Records == nil:
		return d.Fail(start, "it holds no Items")
	case d.count >= 0 && d.count != len(d.page.Records):
		return d.Fail(start, fmt.Sprintf("it holds %d items, but says %d", len(d.page.Records), d.count))
	default:
		d.page.Scanned = max(d.page.Scanned, len(d.page.Records))
	}
	return i
}

func (d *scanDecoder) last(v int) int {
	if d.B[v] == 'n' {
		return d.Skip(v)
	}
	it, end, err := d.parser.Parse(d.B, v)
	if err != nil {
		return d.Fail(v, "LastEvaluatedKey: "+err.Error())
	}
	if it.Len() == 0 {
		return d.Fail(v, "LastEvaluatedKey is empty")
	}
	d.page.Last = it.Clone()
	return end
}

func (d *scanDecoder) units(v int) int {
	end := d.Skip(v)
	if end < 0 {
		return end
	}
	var c struct{ CapacityUnits float64 }
	if err := json.Unmarshal(d.B[v:end], &c); err != nil {
		return d.Fail(v, "ConsumedCapacity: "+err.Error())
	}
	d.page.Units = c.CapacityUnits
	return end
}

// items decodes the array at i.
func (d *scanDecoder) items(i int) int {
	b := d.B
	if b[i] != '[' {
		return d.Fail(i, "Items is not an array but "+jsonscan.LooksLike(b, i))
	}
	d.page.Records = []sluice.Record{}
	if i = jsonscan.Space(b, i+1); i < len(b) && b[i] == ']' {
		return i + 1
	}
	for {
		if i = d.item(i); i < 0 {
			return i
		}
		switch i = jsonscan.Space(b, i); {
		case i >= len(b):
			return d.Fail(i, "unexpected end")
		case b[i] == ']':
			return i + 1
		case b[i] != ',':
			return d.Fail(i, "missing comma between items")
		}
		i = jsonscan.Space(b, i+1)
	}
}

// item writes the text of a record for the item at i, and decodes that text.
func (d *scanDecoder) item(i int) int {
	if i >= len(d.B) || d.B[i] != '{' {
		return d.Fail(i, "an item is expected")
	}
	it, end, err := d.parser.Parse(d.B, i)
	keys := []byte("{}")
	if err == nil {
		key := it.Only(d.src.Keys...)
		if key.Len() != len(d.src.Keys) {
			return d.Fail(i, fmt.Sprintf("an item has not all of the key attributes %q: is it another table?", d.src.Keys))
		}
		keys = key.Raw()
	} else if end = jsonscan.Loose(d.B, i); end < 0 {
		return d.Fail(i, err.Error())
	}
	image := d.B[i:end]
	text := make([]byte, 0, len(`{"eventID":"`)+2*idBytes+len(d.head)+len(keys)+len(`,"NewImage":`)+len(image)+2)
	text = append(text, `{"eventID":"`...)
	text = hex.AppendEncode(text, d.id(it, image))
	text = append(append(text, d.head...), keys...)
	text = append(append(append(text, `,"NewImage":`...), image...), "}}"...)

	if len(d.page.Records) == 0 {
		d.page.Records = make([]sluice.Record, 0, min((len(d.B)-i)/(end-i)+1, mostReserved))
	}
	rec := sluice.DecodeRecord(text)
	rec.Origin = sluice.Backfilled
	d.page.Records = append(d.page.Records, *rec)
	return end
}

// mostReserved bounds the memory that a tiny first item reserves.
const mostReserved = 10_000

// idBytes is the length of an event id. It is written as twice as many hexadecimal
// digits, like a stream's event id.
const idBytes = 16

// id returns an event id that is unique among the items of all tables.
func (d *scanDecoder) id(it item.Item, image []byte) []byte {
	if d.idText == nil {
		d.idText = fmt.Appendf(nil, "%q %q", d.src.TableARN, d.src.TableID)
		d.idHead = len(d.idText)
	}
	text := d.idText[:d.idHead]
	for _, name := range d.src.Keys {
		v, ok := it.Lookup(name)
		if !ok { // the item cannot be decoded
			text = append(text, image...)
			break
		}
		value := v.Text()
		if v.Kind() == item.B {
			value = v.Bytes()
		}
		text = append(strconv.AppendQuote(append(text, ' '), name), ' ')
		text = append(append(text, v.Kind().String()...), ' ')
		text = strconv.AppendQuote(text, string(value))
	}
	d.idText = text
	sum := sha256.Sum256(text)
	return sum[:idBytes]
}
