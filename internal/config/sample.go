package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"

	"github.com/sluicehq/sluice"
)

// CheckSample checks the conditions of a route with records of its patterns: only
// records show the types of attributes. It finds comparisons of a number with a text,
// which fail or are never true. The error is of type Errors.
func (c *Config) CheckSample(route string, recs []*sluice.Record) error {
	var errs Errors
	for i, r := range c.Routes {
		for _, one := range r.conditions() {
			if r.Name == route && one.text != "" {
				errs = append(errs, c.checkSample(element("routes", i)+one.field, one.text, one.names, recs)...)
			}
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return errs.sorted()
}

func (c *Config) checkSample(field, text string, names []string, recs []*sluice.Record) (errs Errors) {
	w, err := compile(text, c.EntityType.resolver(), names...)
	if err != nil {
		return nil // Load reports it
	}
	tree, err := parser.ParseWithConfig(text, language())
	if err != nil {
		return nil
	}
	found := &comparisons{names: names}
	ast.Walk(&tree.Node, found)
	for _, one := range found.all {
		if problem := one.problem(w, one.meant(w, names, recs)); problem != "" {
			at := (&file.Error{Location: one.node.Location(), Message: problem}).Bind(tree.Source)
			errs = append(errs, c.source().expression(field, located(at, text, names)))
		}
	}
	if len(errs) > 0 {
		return errs
	}
	for _, rec := range recs {
		if _, err := w.match(rec); err != nil {
			return Errors{c.source().fault(field, "it fails for the sample record %s: %v", nameOf(rec), err)}
		}
	}
	return nil
}

// nameOf returns a readable name of a record.
func nameOf(rec *sluice.Record) string {
	if rec.Sequence != "" {
		return string(rec.Sequence)
	}
	return rec.EventID
}

// comparison is a comparison in an expression. Records or constants show the types of
// its sides.
type comparison struct {
	node        *ast.BinaryNode
	left, right operand
	guards      []ast.Node // conditions before it, which must all be true
}

// operand is a side of a comparison: an attribute, or the kinds of constants. A list
// can have several kinds.
type operand struct {
	slot  *slot
	kinds []string
}

// comparisons collects the comparisons of an expression.
type comparisons struct {
	names []string
	all   []comparison
}

func (c *comparisons) Visit(n *ast.Node) {
	b, ok := (*n).(*ast.BinaryNode)
	if ok && (b.Operator == "&&" || b.Operator == "and") {
		c.guard(b)
	}
	if !ok || !slices.Contains([]string{"==", "!=", "<", "<=", ">", ">=", "in"}, b.Operator) {
		return
	}
	left, right := c.operand(b.Left), c.operand(b.Right)
	if list, ok := b.Right.(*ast.ArrayNode); ok && b.Operator == "in" {
		for _, one := range list.Nodes {
			right.kinds = append(right.kinds, c.operand(one).kinds...)
		}
		if len(right.kinds) < len(list.Nodes) {
			return // an element depends on the record
		}
	} else if b.Operator == "in" {
		return
	}
	if left.known() && right.known() {
		c.all = append(c.all, comparison{node: b, left: left, right: right})
	}
}

// guard notes conditions on event, table and type before the right side of b: they
// select records. It ignores conditions on attributes, because records outside of the
// sample have other values.
func (c *comparisons) guard(b *ast.BinaryNode) {
	var guards []ast.Node
	for _, g := range conjuncts(b.Left) {
		if !slices.ContainsFunc(nodes[*ast.IdentifierNode](&g), func(id *ast.IdentifierNode) bool {
			return !slices.Contains([]string{"event", "table", "type"}, id.Value)
		}) {
			guards = append(guards, g)
		}
	}
	inside := nodes[*ast.BinaryNode](&b.Right)
	for i := range c.all {
		if slices.Contains(inside, c.all[i].node) {
			c.all[i].guards = append(c.all[i].guards, guards...)
		}
	}
}

// conjuncts are the conditions that n joins by "and".
func conjuncts(n ast.Node) []ast.Node {
	if b, ok := n.(*ast.BinaryNode); ok && (b.Operator == "&&" || b.Operator == "and") {
		return append(conjuncts(b.Left), conjuncts(b.Right)...)
	}
	return []ast.Node{n}
}

// meant returns the records for which the guards are true.
func (c comparison) meant(w *when, names []string, recs []*sluice.Record) []*sluice.Record {
	for _, g := range c.guards {
		guard, err := compile(g.String(), w.typ, names...)
		if err != nil {
			continue
		}
		recs = slices.DeleteFunc(slices.Clone(recs), func(rec *sluice.Record) bool {
			is, err := guard.match(rec)
			return err == nil && !is
		})
	}
	return recs
}

func (o operand) known() bool { return o.slot != nil || len(o.kinds) > 0 }

func (c *comparisons) operand(n ast.Node) operand {
	switch n := n.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
		return operand{kinds: []string{kindOf(0)}}
	case *ast.StringNode:
		return operand{kinds: []string{kindOf("")}}
	case *ast.BoolNode:
		return operand{kinds: []string{kindOf(true)}}
	case *ast.UnaryNode:
		if n.Operator == "-" || n.Operator == "+" {
			return c.operand(n.Node)
		}
	case *ast.ChainNode:
		return c.operand(n.Node)
	case *ast.MemberNode:
		from := c.operand(n.Node)
		name, ok := n.Property.(*ast.StringNode)
		if from.slot == nil || !ok || from.slot.image > keysImage {
			return operand{}
		}
		s := *from.slot
		s.path = append(slices.Clone(s.path), name.Value)
		return operand{slot: &s}
	case *ast.IdentifierNode:
		if slices.Contains(c.names, n.Value) {
			return operand{slot: &slot{name: n.Value, image: images[n.Value]}}
		}
	}
	return operand{}
}

// of returns the kinds of the operand for a record; none if it has no value.
func (o operand) of(w *when, rec *sluice.Record) []string {
	if o.slot == nil {
		return o.kinds
	}
	var work work
	work.reset()
	v, err := o.slot.load(rec, w.typ, &work)
	if err != nil || v == nil {
		return nil
	}
	return []string{kindOf(v)}
}

func (o operand) String() string {
	if o.slot == nil {
		return strings.Join(slices.Compact(slices.Sorted(slices.Values(o.kinds))), " or ")
	}
	return strings.Join(append([]string{o.slot.name}, o.slot.path...), ".")
}

// problem says for how many records the two sides differ in type; "" if for none.
func (c comparison) problem(w *when, recs []*sluice.Record) string {
	n, unlike, left, right := 0, 0, "", ""
	for _, rec := range recs {
		l, r := c.left.of(w, rec), c.right.of(w, rec)
		if len(l) == 0 || len(r) == 0 {
			continue
		}
		n++
		if !slices.ContainsFunc(l, func(kind string) bool { return slices.Contains(r, kind) }) {
			unlike++
			left, right = strings.Join(l, " or "), operand{kinds: r}.String()
		}
	}
	if unlike == 0 {
		return ""
	}
	name, is, with := c.left.String(), left, right
	if c.left.slot == nil {
		name, is, with = c.right.String(), right, left
	}
	what := map[string]string{"==": "is never true", "in": "is never true", "!=": "is always true"}[c.node.Operator]
	what = cmp.Or(what, "fails")
	return fmt.Sprintf("%s is %s in %d of %d sample records that have it: %s with %s %s for them", name, is, unlike, n, c.node.Operator, with, what)
}
