package config

import (
	"maps"
	"regexp"
	"slices"
	"strconv"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/checker/nature"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/types"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/router"
)

// slot is a part of a record that an expression mentions.
type slot struct {
	name  string
	image image
	path  []string // path of the attribute; empty: the whole image
	there bool     // the expression asks only whether the image exists
}

type image uint8

const (
	newImage image = iota
	oldImage
	keysImage
	eventName
	sourceTable
	entityType
)

var images = map[string]image{"new": newImage, "old": oldImage, "keys": keysImage, "event": eventName, "table": sourceTable, "type": entityType}

// nature is the slot's type for the language's checker.
func (s *slot) nature() nature.Nature {
	switch {
	case s.image > keysImage:
		return types.String.Nature()
	case s.there:
		return types.Bool.Nature()
	}
	return types.Any.Nature()
}

// events are the names as any, made once: no record allocates them.
var events = map[sluice.EventName]any{
	sluice.Insert: "INSERT", sluice.Modify: "MODIFY", sluice.Remove: "REMOVE", sluice.Snapshot: "SNAPSHOT", sluice.Delivery: "MESSAGE",
}

func (s *slot) load(rec *sluice.Record, typ router.Resolver, w *work) (any, error) {
	var it sluice.Item
	switch s.image {
	case newImage:
		it = rec.New
	case oldImage:
		it = rec.Old
	case keysImage:
		it = rec.Keys
	case eventName:
		return events[rec.EventName], nil
	case sourceTable:
		return rec.Table, nil
	case entityType:
		return typ.Type(rec)
	}
	if s.there {
		return it.Exists(), nil
	}
	if len(s.path) == 0 {
		return w.mapOf(it), w.spend(0)
	}
	v, ok := it.Lookup(s.path[0])
	for _, name := range s.path[1:] {
		if !ok {
			break
		}
		v, ok = v.Lookup(name)
	}
	if !ok {
		return nil, nil
	}
	return w.valueOf(v), w.spend(0)
}

// rewriter rewrites an expression to handle missing values, and collects its slots.
type rewriter struct {
	names []string
	slots map[string]slot
	err   *file.Error
}

func (r *rewriter) rewrite(root *ast.Node) ([]slot, error) {
	if nested(*root) {
		r.fail(*root, "a function with a condition stands within the condition of another, whose work would grow with the square of a list")
	}
	ast.Walk(root, r)
	*root = r.truth(*root)
	if r.err != nil {
		return nil, r.err
	}
	meter(root)
	used := map[string]bool{}
	for _, id := range nodes[*ast.IdentifierNode](root) {
		used[id.Value] = true
	}
	var slots []slot
	for _, name := range slices.Sorted(maps.Keys(used)) {
		if s, ok := r.slots[name]; ok {
			slots = append(slots, s)
		}
	}
	return slots, nil
}

// nested reports whether a predicate is inside another.
func nested(n ast.Node) bool {
	return slices.ContainsFunc(nodes[*ast.PredicateNode](&n), func(p *ast.PredicateNode) bool {
		return len(nodes[*ast.PredicateNode](&p.Node)) > 0
	})
}

// nodes returns the nodes of a type, including root.
func nodes[T ast.Node](root *ast.Node) []T {
	c := &collector[T]{}
	ast.Walk(root, c)
	return c.found
}

type collector[T ast.Node] struct{ found []T }

func (c *collector[T]) Visit(n *ast.Node) {
	if one, ok := (*n).(T); ok {
		c.found = append(c.found, one)
	}
}

func (r *rewriter) fail(n ast.Node, problem string) {
	if r.err == nil {
		r.err = &file.Error{Location: n.Location(), Message: problem}
	}
}

// slot returns the node that reads a slot.
func (r *rewriter) slot(s slot) ast.Node {
	r.slots[s.name] = s
	return &ast.IdentifierNode{Value: s.name}
}

// Visit is called for each node once its children have been visited.
func (r *rewriter) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		if slices.Contains(r.names, n.Value) {
			ast.Patch(node, r.slot(slot{name: n.Value, image: images[n.Value]}))
		} else if n.Value == "$env" {
			r.fail(n, "there is no $env")
		}
	case *ast.MemberNode:
		r.member(node, n)
	case *ast.CallNode:
		id, ok := n.Callee.(*ast.IdentifierNode)
		switch {
		case !ok || r.slots[id.Value].name != "":
			r.fail(n, "an attribute cannot be called")
		case slices.Contains([]string{"split", "lower", "upper", "trim"}, id.Value):
			n.Arguments = append([]ast.Node{&ast.IdentifierNode{Value: workName}}, n.Arguments...)
		}
	case *ast.UnaryNode:
		if n.Operator == "!" || n.Operator == "not" {
			n.Node = r.truth(n.Node)
		}
	case *ast.ConditionalNode:
		n.Cond = r.truth(n.Cond)
	case *ast.BuiltinNode:
		// The parser accepts functions with a condition even if they are disabled. The
		// result of reduce could double with each element of a list.
		if !slices.Contains(functions, n.Name) {
			r.fail(n, "unknown name "+n.Name)
		}
		if slices.Contains([]string{"all", "any", "none", "one", "count", "filter", "find"}, n.Name) && len(n.Arguments) > 1 {
			if p, ok := n.Arguments[1].(*ast.PredicateNode); ok {
				p.Node = r.truth(p.Node)
			}
		}
	case *ast.VariableDeclaratorNode:
		if images[n.Name] != 0 || n.Name == "new" {
			r.fail(n, n.Name+" is there already; want another name")
		}
	case *ast.BinaryNode:
		r.binary(node, n)
	}
}

func (r *rewriter) member(node *ast.Node, n *ast.MemberNode) {
	name, static := "", true
	switch p := n.Property.(type) {
	case *ast.StringNode:
		name = p.Value
	case *ast.IntegerNode:
		name, static = strconv.Itoa(p.Value), p.Value >= 0
	default:
		static = false
	}
	if id, ok := n.Node.(*ast.IdentifierNode); ok && static {
		if s, ok := r.slots[id.Value]; ok && s.image <= keysImage && !s.there {
			s.path = append(slices.Clone(s.path), name)
			s.name += "\x00" + name
			ast.Patch(node, r.slot(s))
			return
		}
	}
	if chain, ok := n.Node.(*ast.ChainNode); ok && static {
		n.Node = chain.Node
		r.member(node, n)
		return
	}
	ast.Patch(node, call(".", n.Node, n.Property))
}

func (r *rewriter) binary(node *ast.Node, n *ast.BinaryNode) {
	switch n.Operator {
	case "&&", "and", "||", "or":
		n.Left, n.Right = r.truth(n.Left), r.truth(n.Right)
	case "==", "!=":
		left, right := n.Left, n.Right
		if _, ok := left.(*ast.NilNode); ok {
			left, right = right, left
		}
		id, ok := left.(*ast.IdentifierNode)
		if _, isNil := right.(*ast.NilNode); !ok || !isNil {
			return
		}
		if s, ok := r.slots[id.Value]; ok && s.image <= keysImage && len(s.path) == 0 {
			s.there = true
			s.name += "\x00?"
			there := r.slot(s)
			there.SetLocation(id.Location())
			if n.Operator == "!=" {
				ast.Patch(node, there)
			} else {
				ast.Patch(node, &ast.UnaryNode{Operator: "!", Node: there})
			}
		}
	case "+":
		if !literal(n) {
			ast.Patch(node, metered(n.Operator, n.Left, n.Right))
		}
	case "-", "*":
		if !literal(n) {
			ast.Patch(node, call(n.Operator, n.Left, n.Right))
		}
	case "<", "<=", ">", ">=", "contains", "startsWith", "endsWith":
		ast.Patch(node, call(n.Operator, n.Left, n.Right))
	case "in":
		ast.Patch(node, metered("in", n.Left, constant(n.Right)))
	case "matches":
		text, ok := n.Right.(*ast.StringNode)
		if !ok {
			r.fail(n.Right, "the pattern of matches is a text that stands here")
			return
		}
		re, err := regexp.Compile(text.Value)
		if err != nil {
			r.fail(n.Right, err.Error())
			return
		}
		made := &ast.ConstantNode{Value: newPattern(re)}
		made.SetLocation(n.Right.Location())
		ast.Patch(node, metered("matches", n.Left, made))
	case "..":
		r.fail(n, "there are no ranges")
	}
}

// constant turns a list of literals into one value, which is made once.
func constant(n ast.Node) ast.Node {
	list, ok := n.(*ast.ArrayNode)
	if !ok {
		return n
	}
	values := []any{}
	for _, one := range list.Nodes {
		switch one := one.(type) {
		case *ast.StringNode:
			values = append(values, one.Value)
		case *ast.IntegerNode:
			values = append(values, one.Value)
		case *ast.FloatNode:
			values = append(values, one.Value)
		case *ast.BoolNode:
			values = append(values, one.Value)
		case *ast.NilNode:
			values = append(values, nil)
		default:
			return n
		}
	}
	made := &ast.ConstantNode{Value: values}
	made.SetLocation(n.Location())
	return made
}

// literal reports whether a node is constant: it reads nothing of a record.
func literal(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.IntegerNode, *ast.FloatNode, *ast.StringNode:
		return true
	case *ast.BinaryNode:
		return literal(n.Left) && literal(n.Right)
	}
	return false
}

func call(name string, args ...ast.Node) ast.Node {
	callee := &ast.IdentifierNode{Value: name}
	callee.SetLocation(args[0].Location())
	return &ast.CallNode{Callee: callee, Arguments: args}
}

// truth turns a value that may be absent into true or false. Absent is false.
func (r *rewriter) truth(n ast.Node) ast.Node {
	switch is := n.(type) {
	case *ast.BoolNode:
		return n
	case *ast.UnaryNode:
		if is.Operator == "!" || is.Operator == "not" {
			return n
		}
		r.fail(n, "a number is neither true nor false")
	case *ast.BinaryNode:
		switch is.Operator {
		case "==", "!=", "&&", "and", "||", "or":
			return n
		case "??":
		default:
			r.fail(n, "what "+is.Operator+" makes is neither true nor false")
		}
	case *ast.CallNode:
		id, ok := is.Callee.(*ast.IdentifierNode)
		switch {
		case ok && isTest(id.Value):
			return n
		case ok && slices.Contains([]string{"+", "-", "*", "split", "lower", "upper", "trim"}, id.Value):
			r.fail(n, "what "+id.Value+" makes is neither true nor false")
		}
	case *ast.IdentifierNode:
		if r.slots[is.Value].there {
			return n
		}
	case *ast.BuiltinNode:
		switch is.Name {
		case "all", "any", "none", "one", "hasPrefix", "hasSuffix":
			return n
		case "first", "last", "find":
		default:
			r.fail(n, "what "+is.Name+" makes is neither true nor false")
		}
	case *ast.IntegerNode, *ast.FloatNode, *ast.StringNode, *ast.ArrayNode, *ast.MapNode, *ast.ConstantNode:
		r.fail(n, "it is neither true nor false")
	}
	made := call("?", n)
	made.SetLocation(n.Location())
	return made
}
