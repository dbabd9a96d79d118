package item

import "github.com/sluicehq/sluice/internal/jsonscan"

// cursor walks over the attributes of a checked map.
type cursor struct {
	b     []byte
	i     int
	name  []byte // quoted
	value Value
}

func (it Item) cursor() cursor { return cursor{b: it.raw} }

func (c *cursor) next() bool {
	if len(c.b) == 0 {
		return false
	}
	i := jsonscan.Space(c.b, c.i+1) // after the brace or the comma
	if c.b[i] == '}' {
		return false
	}
	end, _, _ := jsonscan.String(c.b, i)
	c.name = c.b[i:end]
	i, _ = jsonscan.Colon(c.b, end)
	c.value, i = typed(c.b, i)
	c.i = jsonscan.Space(c.b, i)
	if c.b[c.i] == '}' {
		c.i-- // so that the next step finds the brace
	}
	return true
}

// typed reads the {"tag":value} at b[i] and returns the offset after it.
func typed(b []byte, i int) (Value, int) {
	i = jsonscan.Space(b, i+1)
	end, _, _ := jsonscan.String(b, i)
	kind := kindOf(b[i+1 : end-1])
	i, _ = jsonscan.Colon(b, end)
	end, _ = jsonscan.Value(b, i)
	return Value{kind: kind, raw: b[i:end:end]}, jsonscan.Space(b, end) + 1
}

// elements walks over the elements of a checked array.
type elements struct {
	b          []byte
	start, end int
}

func (c *elements) next() bool {
	i := jsonscan.Space(c.b, c.end) // the bracket, a comma or the end
	if c.b[i] == ']' {
		return false
	}
	i = jsonscan.Space(c.b, i+1)
	if c.b[i] == ']' {
		return false
	}
	c.start = i
	c.end, _ = jsonscan.Value(c.b, i)
	return true
}
