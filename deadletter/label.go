package deadletter

import (
	"encoding/binary"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
)

// label is what a box must know of an entry to tell which item it holds. Stores
// that can (state.Labels) keep it beside the letter, so that a start reads some
// hundred bytes of each letter, however large it is.
type label struct {
	route, stream string
	sequence      sluice.Sequence
	keys          item.Item // none: it holds no item
}

func labelOf(route string, rec *sluice.Record) label {
	return label{route, rec.StreamARN, rec.Sequence, rec.Keys}
}

// labelVersion is the first byte of a label; the program reads letters that have
// a label with another one.
const labelVersion = 1

// append appends the route, the stream, the sequence number and the keys as they
// came, each behind its length.
func (l *label) append(dst []byte) []byte {
	dst = append(dst, labelVersion)
	for _, part := range []string{l.route, l.stream, string(l.sequence), string(l.keys.Raw())} {
		dst = binary.AppendUvarint(dst, uint64(len(part)))
		dst = append(dst, part...)
	}
	return dst
}

// parseLabel reads what append wrote; ok is false when it is anything else.
func parseLabel(data []byte) (l label, ok bool) {
	if len(data) == 0 || data[0] != labelVersion {
		return label{}, false
	}
	data = data[1:]
	var parts [4][]byte
	for i := range parts {
		n, size := binary.Uvarint(data)
		if size <= 0 || n > uint64(len(data)-size) {
			return label{}, false
		}
		parts[i], data = data[size:size+int(n)], data[size+int(n):]
	}
	if len(data) > 0 {
		return label{}, false
	}
	l = label{route: string(parts[0]), stream: string(parts[1]), sequence: sluice.Sequence(parts[2])}
	if len(parts[3]) > 0 {
		keys, err := item.Parse(parts[3])
		if err != nil {
			return label{}, false
		}
		l.keys = keys
	}
	return l, true
}
