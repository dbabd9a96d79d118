package recordtest

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
)

// Tree is a random attribute map that can be written in many ways which all
// mean the same.
type Tree struct{ root node }

type node struct {
	tag   string
	text  string // of S, N, B (raw bytes), BOOL and NULL
	names []string
	kids  []node
}

// Random returns a random attribute map, nested up to depth deep.
func Random(rng *rand.Rand, depth int) Tree { return Tree{randomMap(rng, depth)} }

var alphabet = []string{"a", "b", "Z", "0", "9", " ", "_", ".", "/", "<", "&", "'", "\"", "\\", "\n", "\x00", "\x1f", "\x7f", "é", "ß", "€", "日", "😀", "\u2028", "longer text without anything special in it, "}

func randomText(rng *rand.Rand, most int) string {
	var sb strings.Builder
	for range rng.IntN(most + 1) {
		sb.WriteString(alphabet[rng.IntN(len(alphabet))])
	}
	return sb.String()
}

func randomNumber(rng *rand.Rand) string {
	switch rng.IntN(5) {
	case 0:
		return fmt.Sprint(rng.IntN(20) - 5)
	case 1:
		return fmt.Sprint(rng.Int64() - rng.Int64())
	case 2:
		return fmt.Sprintf("%d.%d", rng.IntN(1000), rng.IntN(1000))
	case 3:
		return fmt.Sprintf("-%d%019dE%d", rng.Uint32(), rng.Uint64()>>1, rng.IntN(180)-90)
	}
	return strings.Repeat("1234567890", 4)[:1+rng.IntN(38)]
}

func randomMap(rng *rand.Rand, depth int) node {
	n := node{tag: "M"}
	seen := map[string]bool{}
	many := 8
	if rng.IntN(20) == 0 {
		many = 150
	}
	for range rng.IntN(many) {
		name := randomText(rng, 4)
		if seen[name] {
			continue
		}
		seen[name] = true
		n.names = append(n.names, name)
		n.kids = append(n.kids, randomValue(rng, depth))
	}
	return n
}

func randomValue(rng *rand.Rand, depth int) node {
	tags := []string{"S", "S", "N", "N", "B", "BOOL", "NULL", "SS", "NS", "BS", "M", "L"}
	if depth == 0 {
		tags = tags[:10]
	}
	tag := tags[rng.IntN(len(tags))]
	switch tag {
	case "M":
		return randomMap(rng, depth-1)
	case "L":
		n := node{tag: "L"}
		for range rng.IntN(5) {
			n.kids = append(n.kids, randomValue(rng, depth-1))
		}
		return n
	case "SS", "NS", "BS":
		n := node{tag: tag}
		for range 1 + rng.IntN(4) {
			n.kids = append(n.kids, randomScalar(rng, tag[:1]))
		}
		return n
	}
	return randomScalar(rng, tag)
}

func randomScalar(rng *rand.Rand, tag string) node {
	switch tag {
	case "N":
		return node{tag: tag, text: randomNumber(rng)}
	case "BOOL":
		return node{tag: tag, text: fmt.Sprint(rng.IntN(2) == 0)}
	case "NULL":
		return node{tag: tag, text: "true"}
	}
	return node{tag: tag, text: randomText(rng, 12)}
}

// JSON writes the map without white space, in its own order.
func (t Tree) JSON() string { return t.Variant(nil) }

// Variant writes the map with white space, escapes, order of attributes and
// order within sets chosen by rng, or like JSON when rng is nil.
func (t Tree) Variant(rng *rand.Rand) string {
	w := writer{rng: rng}
	w.payload(t.root)
	return w.String()
}

type writer struct {
	strings.Builder
	rng *rand.Rand
}

// put writes a token and perhaps some white space.
func (w *writer) put(token string) {
	w.WriteString(token)
	for w.rng != nil && w.rng.IntN(4) == 0 {
		w.WriteByte(" \n\t\r"[w.rng.IntN(4)])
	}
}

func (w *writer) order(n int) []int {
	if w.rng != nil {
		return w.rng.Perm(n)
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	return order
}

func (w *writer) value(n node) {
	w.put("{")
	w.put(`"` + n.tag + `"`)
	w.put(":")
	w.payload(n)
	w.put("}")
}

func (w *writer) payload(n node) {
	switch n.tag {
	case "S", "N":
		w.text(n.text)
	case "B":
		w.text(base64.StdEncoding.EncodeToString([]byte(n.text)))
	case "BOOL", "NULL":
		w.put(n.text)
	case "M":
		w.put("{")
		for i, k := range w.order(len(n.kids)) {
			if i > 0 {
				w.put(",")
			}
			w.text(n.names[k])
			w.put(":")
			w.value(n.kids[k])
		}
		w.put("}")
	case "L":
		w.put("[")
		for i, kid := range n.kids {
			if i > 0 {
				w.put(",")
			}
			w.value(kid)
		}
		w.put("]")
	default:
		w.put("[")
		for i, k := range w.order(len(n.kids)) {
			if i > 0 {
				w.put(",")
			}
			w.payload(n.kids[k])
		}
		w.put("]")
	}
}

func (w *writer) text(s string) {
	var sb strings.Builder
	sb.WriteByte('"')
	for _, r := range s {
		switch escape := w.rng != nil && w.rng.IntN(5) == 0; {
		case r > 0xffff && escape:
			fmt.Fprintf(&sb, `\u%04x\u%04X`, 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff)
		case r < 0x20 || escape && r <= 0xffff:
			fmt.Fprintf(&sb, `\u%04x`, r)
		case r == '"' || r == '\\' || r == '/' && w.rng != nil:
			sb.WriteByte('\\')
			sb.WriteRune(r)
		default:
			sb.WriteRune(r)
		}
	}
	w.put(sb.String() + `"`)
}
