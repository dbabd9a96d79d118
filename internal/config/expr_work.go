package config

import (
	"fmt"
	"math"
	"strconv"

	"github.com/expr-lang/expr/ast"
)

// What one evaluation may do, so that whoever writes items cannot keep a route
// busy for minutes. A condition of a function, such as that of all, runs for
// each element of a list. All else runs once, over at most an item; what it makes
// is counted, too.
const (
	maxWork    = 32 << 20 // bytes of text that are made, or that conditions look at
	perElement = 32       // and so many for each element, and for each part of the condition
	perPart    = 96       // and so many for each that split makes
	perMap     = 384      // and so many for each map of an item

	fewMembers = 16 // of a list that is not hashed
	manyLists  = 64 // are hashed at most
)

// workName is what an evaluation's work is called among the slots.
const workName = "\x00work"

// work is what an evaluation may still do.
type work struct {
	left  int
	lists map[*any]*members // by their first element; in has searched them
}

func (w *work) reset() {
	w.left = maxWork
	clear(w.lists)
}

func (w *work) spend(n int) error {
	if w.left -= n; w.left < 0 {
		return fmt.Errorf("it takes too long for the record: its lists and texts are too large for this expression")
	}
	return nil
}

// weight is what it costs to look at all of v.
func weight(v any) int {
	switch v := v.(type) {
	case string:
		return len(v)
	case []any:
		n := 0
		for _, one := range v {
			n += perElement + weight(one)
		}
		return n
	case map[string]any:
		n := 0
		for name, one := range v {
			n += perElement + len(name) + weight(one)
		}
		return n
	}
	return 0
}

// members are the elements of a list, to be found by in.
type members struct {
	list   []any
	scalar map[any]struct{} // from the second time on that in is asked
	other  []any            // lists and maps
	weight int              // of other
}

// index hashes the elements.
func (m *members) index() {
	m.scalar = make(map[any]struct{}, len(m.list))
	for _, one := range m.list {
		if key, ok := scalar(one); ok {
			m.scalar[key] = struct{}{}
		} else {
			m.other = append(m.other, one)
		}
	}
	m.weight = weight(m.other)
}

// scalar is what two values have in common that are equal, unless they are
// lists or maps.
func scalar(v any) (key any, ok bool) {
	switch v := v.(type) {
	case nil, bool, string, int, decimal:
		return v, true
	case float64:
		if i, err := strconv.ParseInt(decimals(v), 10, 64); err == nil {
			return int(i), true
		}
		return v, !math.IsNaN(v - v) // NaN and infinity equal nothing
	}
	return nil, false
}

// in reports whether a list, a set or a map has needle. A list that it is asked for
// again, in a condition, is hashed.
func (w *work) in(needle, all any) (bool, error) {
	list, ok := all.([]any)
	if !ok {
		return in(needle, all)
	}
	if len(list) <= fewMembers {
		if _, ok := scalar(needle); !ok {
			if err := w.spend(weight(list)); err != nil {
				return false, err
			}
		}
		return in(needle, all)
	}
	m := w.lists[&list[0]]
	switch {
	case m == nil || len(m.list) != len(list):
		if w.lists == nil {
			w.lists = map[*any]*members{}
		}
		if len(w.lists) < manyLists {
			w.lists[&list[0]] = &members{list: list}
		}
		if err := w.spend(weight(list)); err != nil {
			return false, err
		}
		return in(needle, all)
	case m.scalar == nil:
		if err := w.spend(weight(list)); err != nil {
			return false, err
		}
		m.index()
	}
	if key, ok := scalar(needle); ok {
		_, has := m.scalar[key]
		return has, w.spend(perElement)
	}
	if err := w.spend(perElement + m.weight); err != nil {
		return false, err
	}
	return in(needle, m.other)
}

// meter has the conditions of functions count their work.
func meter(root *ast.Node) {
	for _, p := range nodes[*ast.PredicateNode](root) {
		m := &metering{}
		ast.Walk(&p.Node, m)
		p.Node = metered("step", &ast.IntegerNode{Value: m.parts * perElement}, p.Node)
	}
}

// metering counts the parts of a condition, and has functions that look at a whole
// text or list count it.
type metering struct{ parts int }

func (m *metering) Visit(node *ast.Node) {
	m.parts++
	switch n := (*node).(type) {
	case *ast.BuiltinNode:
		weighAll(n.Arguments)
	case *ast.CallNode:
		switch n.Callee.(*ast.IdentifierNode).Value {
		case "?", ".", "matches", "split", "lower", "upper", "trim", "+": // cost little, or count themselves
		case "in": // counts its list
			weighAll(n.Arguments[1:2])
		default:
			weighAll(n.Arguments)
		}
	case *ast.BinaryNode:
		if (n.Operator == "==" || n.Operator == "!=") && !literal(n.Left) && !literal(n.Right) {
			n.Left, n.Right = weigh(n.Left), weigh(n.Right)
		}
	}
}

func weighAll(args []ast.Node) {
	for i := range args {
		args[i] = weigh(args[i])
	}
}

func weigh(n ast.Node) ast.Node {
	switch n.(type) {
	case *ast.ConstantNode, *ast.BoolNode, *ast.NilNode:
		return n
	}
	if literal(n) {
		return n
	}
	return metered("weigh", n)
}

// metered is a call of a function whose first argument is the work.
func metered(name string, args ...ast.Node) ast.Node {
	w := &ast.IdentifierNode{Value: workName}
	made := call(name, append([]ast.Node{w}, args...)...)
	made.SetLocation(args[len(args)-1].Location())
	made.(*ast.CallNode).Callee.SetLocation(made.Location())
	return made
}
