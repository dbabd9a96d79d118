package config

import (
	"fmt"
	"math"
	"strconv"

	"github.com/expr-lang/expr/ast"
)

// Limits of one evaluation: writers of items cannot keep a route busy for minutes. The
// condition of a function, such as all, runs for each element of a list. Everything
// else runs once, over at most one item. New values count, too.
const (
	maxWork    = 32 << 20 // bytes of new texts, and of texts that conditions read
	perElement = 32       // cost of each element, and of each part of a condition
	perPart    = 96       // cost of each part that split makes
	perMap     = 384      // cost of each map of an item

	fewMembers = 16 // members of a list that is not hashed
	manyLists  = 64 // hashed lists, at most
)

// workName is the name of the evaluation's work among the slots.
const workName = "\x00work"

// work is the remaining budget of an evaluation.
type work struct {
	left  int
	lists map[*any]*members // lists that in has searched, by their first element
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

// weight is the cost of reading all of v.
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

// members are the elements of a list for in.
type members struct {
	list   []any
	scalar map[any]struct{} // filled at the second search
	other  []any            // lists and maps
	weight int              // total weight of other
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

// scalar returns a map key that equal values share. Lists and maps have none.
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

// in reports whether a list, a set or a map has needle. If a condition searches a list
// again, in hashes it.
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

// meter makes the conditions of functions count their work.
func meter(root *ast.Node) {
	for _, p := range nodes[*ast.PredicateNode](root) {
		m := &metering{}
		ast.Walk(&p.Node, m)
		p.Node = metered("step", &ast.IntegerNode{Value: m.parts * perElement}, p.Node)
	}
}

// metering counts the parts of a condition. It makes functions that read a whole text
// or list count it.
type metering struct{ parts int }

func (m *metering) Visit(node *ast.Node) {
	m.parts++
	switch n := (*node).(type) {
	case *ast.BuiltinNode:
		weighAll(n.Arguments)
	case *ast.CallNode:
		switch n.Callee.(*ast.IdentifierNode).Value {
		case "?", ".", "matches", "split", "lower", "upper", "trim", "+": // cheap, or they count themselves
		case "in": // in counts its list
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

// metered wraps a function in a call whose first argument is the work.
func metered(name string, args ...ast.Node) ast.Node {
	w := &ast.IdentifierNode{Value: workName}
	made := call(name, append([]ast.Node{w}, args...)...)
	made.SetLocation(args[len(args)-1].Location())
	made.(*ast.CallNode).Callee.SetLocation(made.Location())
	return made
}
