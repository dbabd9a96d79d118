package streamtest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
)

const both = "NEW_AND_OLD_IMAGES"

// differ compares two items.
func differ(what string, got sluice.Item, want string) error {
	if want == "" {
		if got.Exists() {
			return fmt.Errorf("%s is %s, want none", what, got.Raw())
		}
		return nil
	}
	it, err := item.Parse([]byte(want))
	if err != nil {
		return err
	}
	if !got.Equal(it) {
		return fmt.Errorf("%s is %s, want %s", what, got.Raw(), want)
	}
	return nil
}

func imagesByView(w *world) error {
	const (
		key    = `{"pk":{"S":"a"},"sk":{"S":"1"}}`
		first  = `{"pk":{"S":"a"},"sk":{"S":"1"},"x":{"S":"old"}}`
		second = `{"pk":{"S":"a"},"sk":{"S":"1"},"x":{"S":"new"},"y":{"NULL":true}}`
	)
	var errs []error
	for _, view := range []string{"KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE", both} {
		table := w.table("sk", view)
		w.put(table, first)
		w.put(table, second)
		w.remove(table, key)
		recs := w.read(table)
		if len(recs) != 3 {
			return fmt.Errorf("%s: %d records, want 3", view, len(recs))
		}
		news, olds := [3]string{first, second, ""}, [3]string{"", first, second}
		if view == "KEYS_ONLY" || view == "OLD_IMAGE" {
			news = [3]string{}
		}
		if view == "KEYS_ONLY" || view == "NEW_IMAGE" {
			olds = [3]string{}
		}
		for i, event := range []sluice.EventName{sluice.Insert, sluice.Modify, sluice.Remove} {
			r := &recs[i]
			what := fmt.Sprintf("%s: record %d: ", view, i)
			if r.EventName != event || r.ViewType != view {
				errs = append(errs, fmt.Errorf("%s%s of view type %s, want %s", what, r.EventName, r.ViewType, event))
			}
			errs = append(errs, differ(what+"Keys", r.Keys, key), differ(what+"NewImage", r.New, news[i]), differ(what+"OldImage", r.Old, olds[i]))
		}
	}
	return errors.Join(errs...)
}

func nothingChanges(w *world) error {
	table := w.table("", both)
	w.put(table, `{"pk":{"S":"a"},"n":{"N":"1.50"},"s":{"SS":["x","y"]},"m":{"M":{"k":{"NS":["1","2"]},"j":{"S":"v"}}}}`)
	w.put(table, `{"pk":{"S":"a"},"n":{"N":"1.50"},"s":{"SS":["x","y"]},"m":{"M":{"k":{"NS":["1","2"]},"j":{"S":"v"}}}}`)
	w.put(table, `{"m":{"M":{"j":{"S":"v"},"k":{"NS":["2","1.0"]}}},"s":{"SS":["y","x"]},"n":{"N":"15E-1"},"pk":{"S":"a"}}`)
	w.remove(table, `{"pk":{"S":"never there"}}`)
	w.remove(table, `{"pk":{"S":"a"}}`)
	w.remove(table, `{"pk":{"S":"a"}}`)
	var got []sluice.EventName
	for _, r := range w.read(table) {
		got = append(got, r.EventName)
	}
	if fmt.Sprint(got) != "[INSERT REMOVE]" {
		return fmt.Errorf("records %v, want [INSERT REMOVE]", got)
	}
	return nil
}

func keptValues(w *world) error {
	table := w.table("", both)
	const rich = `{"pk":{"S":"b"},"s":{"S":"a\"\\\n\u0000é😀</b>"},"b":{"B":"AP9/"},"t":{"BOOL":true},"f":{"BOOL":false},"u":{"NULL":true},` +
		`"m":{"M":{"empty":{"S":""},"deep":{"L":[{"M":{}},{"L":[]}]}}},"ss":{"SS":["b","a"]},"ns":{"NS":["2","1"]},"bs":{"BS":["AQ==","AA=="]}}`
	w.put(table, rich)
	return differ("the item", w.read(table)[0].New, rich)
}

// Numbers as they are written, and as they come back.
var numbers = [][2]string{
	{"1.50", "1.5"}, {"1E3", "1000"}, {"-0.0", "0"}, {"0.00012", "0.00012"}, {"1e-5", "0.00001"}, {"-1.5e2", "-150"}, {"007", "7"},
	{"12345678901234567890123456789012345678", "12345678901234567890123456789012345678"}, {"0.5E-2", "0.005"}, {"120.0", "120"},
}

func keptNumbers(w *world) error {
	table := w.table("", both)
	for i, n := range numbers {
		w.put(table, fmt.Sprintf(`{"pk":{"S":"%d"},"n":{"N":"%s"}}`, i, n[0]))
	}
	for i, r := range w.read(table) {
		if v, _ := r.New.Lookup("n"); v.Str() != numbers[i][1] {
			return fmt.Errorf("%s comes back as %s, want %s", numbers[i][0], v.Str(), numbers[i][1])
		}
	}
	return nil
}

func keptNested(w *world) error {
	table := w.table("", both)
	for i, n := range numbers {
		w.put(table, fmt.Sprintf(`{"pk":{"S":"%d"},"n":{"M":{"l":{"L":[{"N":"%s"}]}}}}`, i, n[0]))
	}
	for i, r := range w.read(table) {
		if v, _ := r.New.Lookup("n.l.0"); v.Str() != numbers[i][1] {
			return fmt.Errorf("%s comes back as %s, want %s", numbers[i][0], v.Str(), numbers[i][1])
		}
	}
	return nil
}

func sizes(w *world) error {
	table := w.table("", both)
	const rich = `"s":{"S":"é"},"b":{"B":"AAEC"},"t":{"BOOL":true},"u":{"NULL":true},"ns":{"NS":["1","22","333"]},"neg":{"N":"-12.5"},"big":{"N":"1000000"},"zero":{"N":"0"},"pairs":{"NS":["1.5","120","1200","0.00012"]},` +
		`"l":{"L":[{"S":"xy"},{"L":[]}]},"m":{"M":{"key":{"S":"v"}}},"ss":{"SS":["a","bc"]}`
	w.put(table, `{"pk":{"S":"a"}}`)
	w.put(table, `{"pk":{"S":"a"},`+rich+`}`)
	w.remove(table, `{"pk":{"S":"a"}}`)
	// Names and values: pk 3, s 3, b 4, t 2, u 2, ns 9, neg 7, big 5, zero 5,
	// pairs 5+3+3+2+3, l 1+3+1+2+1+3, m 1+3+1+3+1, ss 5.
	const item = 3 + 3 + 4 + 2 + 2 + 9 + 7 + 5 + 5 + 16 + 11 + 9 + 5
	want := []int{3 + 3, 3 + 3 + item, 3 + item}
	for i, r := range w.read(table) {
		if r.SizeBytes != want[i] {
			return fmt.Errorf("record %d has %d bytes, want %d", i, r.SizeBytes, want[i])
		}
	}
	return nil
}

func envelope(w *world) error {
	table := w.table("", both)
	ids := make(map[string]bool)
	for i := range 20 {
		w.put(table, fmt.Sprintf(`{"pk":{"S":"%d"}}`, i))
	}
	recs := w.read(table)
	if len(recs) != 20 {
		return fmt.Errorf("%d records, want 20", len(recs))
	}
	for _, r := range recs {
		ids[r.EventID] = true
		raw := string(r.Raw())
		if r.EventID == "" || strings.Contains(raw, "userIdentity") || !strings.Contains(raw, `"eventSource":"aws:dynamodb"`) || !strings.Contains(raw, `"eventVersion":"1.`) {
			return fmt.Errorf("record %s", raw)
		}
	}
	if len(ids) != 20 {
		return fmt.Errorf("%d event ids of 20 records", len(ids))
	}
	return nil
}

func region(w *world) error {
	table := w.table("", both)
	w.put(table, `{"pk":{"S":"a"}}`)
	want := w.config().Region
	if got := w.read(table)[0].Region; got != want {
		return fmt.Errorf("awsRegion is %q, want %q", got, want)
	}
	if arn := w.arn(table); !strings.HasPrefix(arn, "arn:aws:dynamodb:"+want+":") {
		return fmt.Errorf("the stream is %s", arn)
	}
	return nil
}

func creationTimes(w *world) error {
	table := w.table("", both)
	before := time.Now().Truncate(time.Second)
	w.put(table, `{"pk":{"S":"a"}}`)
	after := time.Now()
	if at := w.read(table)[0].Created; at.Before(before) || at.After(after) || at.Nanosecond() != 0 {
		return fmt.Errorf("created at %v, want a full second from %v to %v", at, before, after)
	}
	if before.Unix()%60 == 0 {
		return errUndecided // a second and a minute look the same
	}
	return nil
}

func sequencesGrow(w *world) error {
	table := w.table("", both)
	for i := range 30 {
		w.put(table, fmt.Sprintf(`{"pk":{"S":"%d"}}`, i%7)+"")
		w.put(table, fmt.Sprintf(`{"pk":{"S":"%d"},"i":{"N":"%d"}}`, i%7, i))
	}
	recs := w.read(table)
	for i := range recs {
		s := recs[i].Sequence
		if len(s) < 21 || len(s) > 40 {
			return fmt.Errorf("sequence number %s; want 21 to 40 digits", s)
		}
		if i > 0 && s.Compare(recs[i-1].Sequence) <= 0 {
			return fmt.Errorf("sequence number %s follows %s", s, recs[i-1].Sequence)
		}
	}
	return nil
}

func sequenceDigits(w *world) error {
	table := w.table("", both)
	w.put(table, `{"pk":{"S":"a"}}`)
	if s := w.read(table)[0].Sequence; s[0] == '0' {
		return fmt.Errorf("sequence number %s", s)
	}
	start := w.describe(w.arn(table)).Shards[0].SequenceNumberRange.StartingSequenceNumber
	if start == nil || (*start)[0] == '0' {
		return errors.New("the shard starts with a zero")
	}
	return nil
}

func thousandRecords(w *world) error {
	table := w.table("", "KEYS_ONLY")
	for i := range 1001 {
		w.put(table, fmt.Sprintf(`{"pk":{"S":"%d"}}`, i))
	}
	page := w.page(w.iterator(w.arn(table), types.ShardIteratorTypeTrimHorizon), 0)
	rest := w.page(page.NextShardIterator, 0)
	if len(page.Records) != 1000 || len(rest.Records) != 1 {
		return fmt.Errorf("pages of %d and %d records, want 1000 and 1", len(page.Records), len(rest.Records))
	}
	return nil
}

func megabyte(w *world) error {
	table := w.table("", "NEW_IMAGE")
	text := strings.Repeat("x", 100_000)
	for i := range 15 {
		w.put(table, fmt.Sprintf(`{"pk":{"S":"%d"},"text":{"S":"%s"}}`, i, text))
	}
	it := w.iterator(w.arn(table), types.ShardIteratorTypeTrimHorizon)
	var pages []int
	for n := 0; n < 15; {
		page := w.page(it, 0)
		n += len(page.Records)
		it = page.NextShardIterator
		pages = append(pages, len(page.Records))
	}
	if len(pages) != 2 || pages[0] != 10 {
		return fmt.Errorf("pages of %v records of 100 kB, want 10 and 5", pages)
	}
	return nil
}
