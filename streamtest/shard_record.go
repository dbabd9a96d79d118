package streamtest

import (
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
)

// record is one stream record, encoded when it is written.
type record struct {
	seq   sluice.Sequence
	at    time.Time
	event sluice.EventName
	keys  sluice.Item
	size  int    // as the service counts it
	json  []byte // nil once trimmed
}

// encode makes the record of the change from old to image; one may be absent.
func (r *record) encode(st *stream, old, image sluice.Item, ttl bool) {
	switch {
	case !old.Exists():
		r.event = sluice.Insert
	case !image.Exists():
		r.event = sluice.Remove
	default:
		r.event = sluice.Modify
	}
	if !st.view.Has(item.NewImage) {
		image = sluice.Item{}
	}
	if !st.view.Has(item.OldImage) {
		old = sluice.Item{}
	}
	r.size = sizeOf(r.keys) + sizeOf(image) + sizeOf(old)
	b := make([]byte, 0, 400+len(r.keys.Raw())+len(image.Raw())+len(old.Raw()))
	b = append(b, `{"awsRegion":"`+serviceRegion+`","dynamodb":{"ApproximateCreationDateTime":`...)
	b = strconv.AppendInt(b, r.at.Unix(), 10)
	for _, part := range []struct {
		name string
		it   sluice.Item
	}{{"Keys", r.keys}, {"NewImage", image}, {"OldImage", old}} {
		if part.it.Exists() {
			b = append(append(append(b, `,"`...), part.name...), `":`...)
			b = append(b, part.it.Raw()...)
		}
	}
	b = append(append(b, `,"SequenceNumber":"`...), r.seq...)
	b = strconv.AppendInt(append(b, `","SizeBytes":`...), int64(r.size), 10)
	b = append(append(b, `,"StreamViewType":"`...), st.view.String()...)
	b = hex.AppendEncode(append(b, `"},"eventID":"`...), binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, hash([]byte(st.arn))), hash([]byte(r.seq))))
	b = append(append(b, `","eventName":"`...), r.event...)
	b = append(b, `","eventSource":"aws:dynamodb","eventVersion":"1.1"`...)
	if ttl {
		b = append(b, `,"userIdentity":{"PrincipalId":"dynamodb.amazonaws.com","Type":"Service"}`...)
	}
	r.json = append(b, '}')
}
