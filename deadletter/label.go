package deadletter

import (
	"encoding/binary"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
)

// label is the part of an entry that tells which item it holds. Stores with
// state.Labels keep it beside the letter. So a start reads a few hundred bytes per
// letter, however large the letter is.
type label struct {
	route, stream string
	sequence      sluice.Sequence
	keys          item.Item // none: the entry holds no item
}

func labelOf(route string, rec *sluice.Record) label {
	return label{route, rec.StreamARN, rec.Sequence, rec.Keys}
}

// labelVersion is the first byte of a label. If it differs, the program reads the
// letter instead.
const labelVersion = 1

// append appends the route, the stream, the sequence number and the unchanged
// keys, each after its length.
func (l *label) append(dst []byte) []byte {
	dst = append(dst, labelVersion)
	for _, part := range []string{l.route, l.stream, string(l.sequence), string(l.keys.Raw())} {
		dst = binary.AppendUvarint(dst, uint64(len(part)))
		dst = append(dst, part...)
	}
	return dst
}

// parseLabel decodes the output of append; ok is false for other data.
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
