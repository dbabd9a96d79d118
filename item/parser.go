package item

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sluicehq/sluice/internal/jsonscan"
)

// maxDepth is DynamoDB's limit on nested maps and lists.
const maxDepth = 32

// Parser parses attribute maps inside a larger document. The maps share memory for
// their indexes. The zero Parser is ready to use. It is not safe for concurrent
// use; its Items are.
type Parser struct {
	b     []byte
	names []entry // of the open maps, outermost first
	slab  []entry // indexes of finished maps

	off  int      // offset of the failure
	msg  string   // empty if nothing failed
	path []string // path of the failure, innermost first; filled while unwinding
}

// Parse validates the attribute map that starts at data[off] and returns the
// offset after it. The Item aliases data. An error is a [*SyntaxError] whose
// Offset counts from the start of data.
func (p *Parser) Parse(data []byte, off int) (it Item, end int, err error) {
	if p.names == nil {
		p.names = make([]entry, 0, 32)
	}
	p.b, p.names = data, p.names[:0]
	if off >= len(data) || data[off] != '{' {
		return Item{}, off, &SyntaxError{Offset: off, Msg: "an attribute map in braces is expected"}
	}
	if end = p.attrs(off, 0); end < 0 {
		return Item{}, p.off, p.takeError()
	}
	return Item{raw: data[off:end:end], idx: p.keep(off)}, end, nil
}

// keep copies the names of the finished map into the slab.
func (p *Parser) keep(off int) []entry {
	n := len(p.names)
	if n == 0 {
		return nil
	}
	if cap(p.slab)-len(p.slab) < n {
		p.slab = make([]entry, 0, max(n, min(2*cap(p.slab), 4096)))
	}
	start := len(p.slab)
	p.slab = append(p.slab, p.names...)
	idx := p.slab[start : start+n : start+n]
	for i := range idx {
		idx[i].off -= uint32(off)
	}
	return idx
}

// fail notes a failure at i. The functions below return its -1, or the offset
// after the checked value.
func (p *Parser) fail(i int, msg string) int {
	p.off, p.msg = i, msg
	return -1
}

// in adds a step to the path of a failure.
func (p *Parser) in(step string) int {
	p.path = append(p.path, step)
	return -1
}

func (p *Parser) takeError() *SyntaxError {
	slices.Reverse(p.path)
	e := &SyntaxError{Path: strings.Join(p.path, "."), Offset: p.off, Msg: p.msg}
	p.path, p.msg = p.path[:0], ""
	return e
}

// Attributes nearly always have no white space. The eight bytes from the closing
// quote of a name give the type and the start of the value.
const (
	attrMask = 0x00ffff00ffffffff // everything except the tag and the first byte of the value
	attrForm = 0x003a2200227b3a22 // ":{"?":?
	setMask  = 0xffffff00ffffffff // everything except the first letter of the tag
	setForm  = 0x3a225300227b3a22 // ":{"?S":
	boolForm = 0x4c4f4f42227b3a22 // ":{"BOOL
	nullForm = 0x4c4c554e227b3a22 // ":{"NULL
	trueMask = 0x00ffffffffffffff
	trueForm = 0x007d657572743a22 // ":true}
	falsForm = 0x7d65736c61663a22 // ":false}
)

// attrs checks the map whose brace stands at i. It leaves the map's names on
// p.names when depth is 0.
func (p *Parser) attrs(i, depth int) int {
	b := p.b
	base := len(p.names)
	var seen nameSet
	i = jsonscan.Space(b, i+1)
	if i < len(b) && b[i] == '}' {
		return i + 1
	}
	for {
		// The name.
		if i >= len(b) || b[i] != '"' {
			return p.fail(i, "attribute name expected")
		}
		start := i
		var sig uint32
		j := i + 1
		if i+17 <= len(b) {
			w := jsonscan.Load(b, i+1)
			if m := jsonscan.Special(w); m != 0 {
				n := jsonscan.First(m)
				if j += n; b[j] == '"' {
					sig = shortSig(w, n)
					goto named
				}
			} else if m = jsonscan.Special(jsonscan.Load(b, i+9)); m != 0 {
				n := 8 + jsonscan.First(m)
				if j += n; b[j] == '"' {
					sig = longSig(w, jsonscan.Load(b, j-8), n)
					goto named
				}
			} else {
				j += 16
			}
		}
		{
			end, escaped, msg := jsonscan.StringRest(b, j)
			if msg != "" {
				return p.fail(end, msg)
			}
			name := b[i+1 : end-1]
			if escaped {
				name = jsonscan.AppendUnquoted(nil, b[i:end])
			}
			sig, j = nameSig(name), end-1
		}
	named:
		if seen.add(sig) && p.duplicate(base, sig, start, j) {
			p.fail(start, "duplicate attribute name")
			return p.in(p.name(start))
		}
		p.names = append(p.names, entry{sig, uint32(start)})

		// The value.
		if j+16 <= len(b) {
			w := jsonscan.Load(b, j)
			if w&attrMask == attrForm {
				switch uint16(w>>32&0xff) | uint16(w>>48)&0xff00 {
				case 'S' | '"'<<8:
					k := j + 8
					for ; k+8 <= len(b); k += 8 {
						if m := jsonscan.Special(jsonscan.Load(b, k)); m != 0 {
							if k += jsonscan.First(m); b[k] == '"' {
								i = k + 1
								goto brace
							}
							break
						}
					}
					end, _, msg := jsonscan.StringRest(b, k)
					if msg != "" {
						p.fail(end, msg)
						return p.in(p.name(start))
					}
					i = end
					goto brace
				case 'N' | '"'<<8:
					if i = plainNumber(b, j+8); i >= 0 {
						goto brace
					}
				case 'M' | '{'<<8:
					if depth < maxDepth {
						if i = p.attrs(j+7, depth+1); i < 0 {
							return p.in(p.name(start))
						}
						goto brace
					}
				case 'L' | '['<<8:
					if depth < maxDepth {
						if i = p.array(L, j+7, depth+1); i < 0 {
							return p.in(p.name(start))
						}
						goto brace
					}
				}
			} else if w == boolForm || w == nullForm {
				switch w = jsonscan.Load(b, j+8); {
				case w&trueMask == trueForm:
					i = j + 14
					goto brace
				case w == falsForm:
					i = j + 15
					goto brace
				}
			} else if w&setMask == setForm && b[j+8] == '[' {
				if kind := shortKinds[byte(w>>32)]; kind >= S && kind <= B {
					if i = p.array(kind+(SS-S), j+8, depth); i < 0 {
						return p.in(p.name(start))
					}
					goto brace
				}
			}
		}
		{
			v, msg := jsonscan.Colon(b, j+1)
			if msg != "" {
				p.fail(v, msg)
				return p.in(p.name(start))
			}
			if i = p.value(v, depth); i < 0 {
				return p.in(p.name(start))
			}
			goto next
		}
	brace: // of the typed value
		if i+3 <= len(b) && b[i] == '}' {
			if b[i+1] == ',' && b[i+2] == '"' {
				i += 2
				continue
			}
			i++
			goto next
		}
		if i = p.closeValue(i); i < 0 {
			return p.in(p.name(start))
		}
	next:
		if i < len(b) && b[i] != ',' && b[i] != '}' {
			i = jsonscan.Space(b, i)
		}
		switch {
		case i >= len(b):
			return p.fail(i, "unexpected end")
		case b[i] == '}':
			if len(p.names)-base > fewNames {
				if k := p.duplicates(base); k >= 0 {
					p.fail(k, "duplicate attribute name")
					return p.in(p.name(k))
				}
			}
			if depth > 0 {
				p.names = p.names[:base]
			}
			return i + 1
		case b[i] != ',':
			return p.fail(i, "missing comma")
		}
		i = jsonscan.Space(b, i+1)
	}
}

// name returns the text of the checked name at i, for an error's path.
func (p *Parser) name(i int) string {
	return text(p.b[i:jsonscan.StringEnd(p.b, i)])
}

// closeValue checks the end of a typed value at i, after what its tag holds.
func (p *Parser) closeValue(i int) int {
	i = jsonscan.Space(p.b, i)
	switch {
	case i >= len(p.b):
		return p.fail(i, "unexpected end")
	case p.b[i] == ',':
		return p.fail(i, "more than one type tag")
	case p.b[i] != '}':
		return p.fail(i, "the typed value is not closed")
	}
	return i + 1
}

// Elements of lists have the same form from their brace on.
const (
	valueMask = 0xffff00ffff // everything except the tag
	valueForm = 0x3a2200227b // {"?":
)

var shortKinds = [256]Kind{'S': S, 'N': N, 'B': B, 'M': M, 'L': L}

// value checks the {"tag":value} at i.
func (p *Parser) value(i, depth int) int {
	b := p.b
	var kind Kind
	if i+8 <= len(b) {
		w := jsonscan.Load(b, i)
		if w&valueMask == valueForm {
			if kind = shortKinds[byte(w>>16)]; kind != Invalid {
				i = jsonscan.Space(b, i+5)
				goto payload
			}
		}
	}
	{
		if i >= len(b) || b[i] != '{' {
			return p.fail(i, "a typed value in braces is expected")
		}
		i = jsonscan.Space(b, i+1)
		if i < len(b) && b[i] == '}' {
			return p.fail(i, "no type tag")
		}
		if i >= len(b) || b[i] != '"' {
			return p.fail(i, "type tag expected")
		}
		end, escaped, msg := jsonscan.String(b, i)
		if msg != "" {
			return p.fail(end, msg)
		}
		tag := b[i+1 : end-1]
		if kind = kindOf(tag); kind == Invalid || escaped {
			return p.fail(i, fmt.Sprintf("unknown type tag %.16q", tag)) // it may be data
		}
		if i, msg = jsonscan.Colon(b, end); msg != "" {
			return p.fail(i, msg)
		}
	}
payload:
	if i = p.payload(kind, i, depth); i < 0 {
		return -1
	}
	if i < len(b) && b[i] == '}' {
		return i + 1
	}
	return p.closeValue(i)
}

// payload checks the value inside the tag of kind.
func (p *Parser) payload(kind Kind, i, depth int) int {
	b := p.b
	switch kind {
	case S, N, B:
		return p.scalar(kind, i)
	case BOOL, NULL:
		if i+4 <= len(b) && string(b[i:i+4]) == "true" {
			return i + 4
		}
		if i+5 <= len(b) && string(b[i:i+5]) == "false" {
			return i + 5
		}
		return p.fail(i, kind.String()+" must be true or false")
	case M:
		if i >= len(b) || b[i] != '{' {
			return p.fail(i, "M must hold an attribute map in braces")
		}
		if depth == maxDepth {
			return p.fail(i, "nested deeper than 32")
		}
		return p.attrs(i, depth+1)
	}
	if i >= len(b) || b[i] != '[' {
		return p.fail(i, kind.String()+" must hold an array")
	}
	if kind == L && depth == maxDepth {
		return p.fail(i, "nested deeper than 32")
	}
	return p.array(kind, i, depth+1)
}

// array checks the array of an L or a set. Its bracket is at i and its elements
// are at depth.
func (p *Parser) array(kind Kind, i, depth int) int {
	b := p.b
	i = jsonscan.Space(b, i+1)
	if i < len(b) && b[i] == ']' {
		return i + 1
	}
	for n := 0; ; n++ {
		if kind == L {
			i = p.value(i, depth)
		} else {
			i = p.scalar(member(kind), i)
		}
		if i < 0 {
			return p.in(strconv.Itoa(n))
		}
		if i < len(b) && b[i] != ',' && b[i] != ']' {
			i = jsonscan.Space(b, i)
		}
		switch {
		case i >= len(b):
			return p.fail(i, "unexpected end")
		case b[i] == ']':
			return i + 1
		case b[i] != ',':
			return p.fail(i, "missing comma")
		}
		i = jsonscan.Space(b, i+1)
	}
}

// scalar checks the string at i as the value of an S, N or B.
func (p *Parser) scalar(kind Kind, i int) int {
	b := p.b
	if i >= len(b) || b[i] != '"' {
		return p.fail(i, kind.String()+" must hold a string")
	}
	if kind == N {
		if end := plainNumber(b, i+1); end >= 0 {
			return end
		}
	}
	end, escaped, msg := jsonscan.String(b, i)
	if msg != "" {
		return p.fail(end, msg)
	}
	if kind == S {
		return end
	}
	t := b[i+1 : end-1]
	if escaped {
		t = jsonscan.AppendUnquoted(nil, b[i:end])
	}
	if kind == N {
		msg = checkNumber(t)
	} else {
		msg = checkBase64(t)
	}
	if msg != "" {
		return p.fail(i, msg)
	}
	return end
}
