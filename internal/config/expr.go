package config

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/expr-lang/expr/checker"
	"github.com/expr-lang/expr/compiler"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/optimizer"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/types"
	"github.com/expr-lang/expr/vm"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/router"
)

const (
	maxLength = 8 << 10 // bytes of an expression; the parser recurses for each bracket
	maxNodes  = 500     // elements of an expression
	maxMemory = 100_000 // values that one evaluation makes
)

// functions that an expression may call. Their results depend on the arguments alone,
// and the record bounds their work.
var functions = []string{
	"all", "any", "none", "one", "count", "filter", "map", "find", "first", "last", "len",
	"lower", "upper", "trim", "split", "hasPrefix", "hasSuffix", "indexOf",
	"abs", "ceil", "floor", "round", "min", "max",
}

// when is a compiled expression. It is safe for concurrent use.
type when struct {
	text    string
	program *vm.Program
	slots   []slot
	typ     router.Resolver
	pool    sync.Pool   // of *evaluation
	fails   atomic.Bool // set after a failure for any record
}

// evaluation is reusable memory for one evaluation.
type evaluation struct {
	vm   vm.VM
	env  map[string]any
	work work
}

// Variables of an expression over a record, and over an item, which is new.
var (
	whenNames = []string{"new", "old", "keys", "event", "table", "type"}
	itemNames = []string{"new"}
)

// exprError is a mistake in an expression, with its place there.
type exprError struct {
	line, column int // line from 1, column from 0
	problem      string
}

func (e *exprError) Error() string {
	return fmt.Sprintf("at line %d, column %d: %s", e.line, e.column+1, e.problem)
}

// compile compiles an expression over a record, with the variables of these names,
// by default all of them; typ finds the record's type. An error is an *exprError.
func compile(text string, typ router.Resolver, names ...string) (_ *when, err error) {
	if len(names) == 0 {
		names = whenNames
	}
	defer func() {
		if r := recover(); r != nil { // panics of the library
			err = &exprError{1, 0, fmt.Sprintf("it cannot be compiled (%v)", r)}
		}
	}()
	if len(text) > maxLength {
		return nil, &exprError{1, 0, fmt.Sprintf("it has %d bytes, more than the %d that are read", len(text), maxLength)}
	}
	w := &when{text: text, typ: typ}
	c := language()
	tree, err := parser.ParseWithConfig(text, c)
	if err != nil {
		return nil, located(err, text, names)
	}
	r := rewriter{names: names, slots: map[string]slot{}}
	if w.slots, err = r.rewrite(&tree.Node); err != nil {
		if at, ok := errors.AsType[*file.Error](err); ok {
			err = at.Bind(tree.Source)
		}
		return nil, located(err, text, names)
	}
	for _, s := range w.slots {
		c.Env.Fields[s.name] = s.nature()
	}
	c.Env.Fields[workName] = types.Any.Nature()
	if _, err := checker.Check(tree, c); err != nil {
		return nil, located(err, text, names)
	}
	if err := optimizer.Optimize(&tree.Node, c); err != nil {
		return nil, located(err, text, names)
	}
	if w.program, err = compiler.Compile(tree, c); err != nil {
		return nil, located(err, text, names)
	}
	w.pool.New = func() any {
		e := &evaluation{env: make(map[string]any, len(w.slots)+1)}
		e.env[workName] = &e.work
		e.vm.MemoryBudget = maxMemory
		return e
	}
	return w, nil
}

// language is the language of expressions.
func language() *conf.Config {
	c := conf.New(map[string]any{})
	c.MaxNodes, c.Expect, c.ExpectAny = maxNodes, reflect.Bool, true
	for name := range c.Builtins {
		c.Disabled[name] = true
	}
	for _, name := range functions {
		delete(c.Disabled, name)
	}
	for name := range c.Disabled {
		delete(c.Builtins, name)
	}
	for _, f := range operators {
		c.Functions[f.Name] = f
	}
	c.Check()
	return c
}

// unexpected matches the library's error for a word at the wrong place. At the end of
// the text the error has no word.
var unexpected = regexp.MustCompile(`^unexpected token (?:EOF|\w+\("(.*)"\))$`)

func located(err error, text string, names []string) error {
	at, ok := errors.AsType[*file.Error](err)
	if !ok {
		return &exprError{1, 0, err.Error()}
	}
	e := &exprError{max(at.Line, 1), at.Column, at.Message}
	if found := unexpected.FindStringSubmatch(at.Message); found != nil {
		switch e.problem = "unexpected " + found[1]; found[1] {
		case "":
			e.problem = "it ends where more is expected"
		case "=":
			e.problem += ": to compare is =="
		}
	}
	if name, ok := strings.CutPrefix(at.Message, "unknown name "); ok {
		if _, rest, call := strings.Cut(text, name); call && strings.HasPrefix(strings.TrimSpace(rest), "(") {
			e.problem = fmt.Sprintf("there is no function %s; there are %s", name, strings.Join(functions, ", "))
		} else {
			e.problem = fmt.Sprintf("there is no %s; want %s, such as new.%s", name, either(names), name)
		}
	}
	return e
}

// match reports whether a record fulfils the expression. An error is about types, such
// as a comparison of a text with a number. It quotes no value, and occurs for the same
// record again. A nil result is false.
func (w *when) match(rec *sluice.Record) (bool, error) {
	e := w.pool.Get().(*evaluation)
	defer w.pool.Put(e)
	ok, err := w.run(e, rec)
	if err != nil {
		w.fails.Store(true)
	}
	return ok, err
}

func (w *when) run(e *evaluation, rec *sluice.Record) (bool, error) {
	e.work.reset()
	for i := range w.slots {
		s := &w.slots[i]
		v, err := s.load(rec, w.typ, &e.work)
		if err != nil {
			return false, fmt.Errorf("when %q: %w", w.text, err)
		}
		e.env[s.name] = v
	}
	result, err := e.vm.Run(w.program, e.env)
	if err != nil {
		return false, w.failed(err)
	}
	switch result := result.(type) {
	case bool:
		return result, nil
	case nil:
		return false, nil
	}
	return false, fmt.Errorf("when %q: it is %s, want true or false", w.text, kindOf(result))
}

func (w *when) failed(err error) error {
	at, ok := errors.AsType[*file.Error](err)
	if !ok {
		return fmt.Errorf("when %q: %w", w.text, err)
	}
	problem := at.Message
	for from, to := range map[string]string{"config.decimal": "number of many digits", "<nil>": "nothing", "interface {}": "value"} {
		problem = strings.ReplaceAll(problem, from, to)
	}
	return fmt.Errorf("when %q, line %d, column %d: %s", w.text, max(at.Line, 1), at.Column+1, problem)
}

// reads returns the images that the expression reads.
func (w *when) reads() (v item.View) {
	for _, s := range w.slots {
		switch s.image {
		case newImage:
			v |= item.NewImage
		case oldImage:
			v |= item.OldImage
		}
	}
	return v
}

// options make a route take the records that fulfil the expression. The route also
// takes records for which the expression fails, and parks them. A router's filter
// cannot return an error.
func (w *when) options() []router.Option {
	return append(needs(w.reads()),
		router.When(func(rec *sluice.Record) bool {
			ok, err := w.match(rec)
			return ok || err != nil
		}),
		router.Use(w.failing),
	)
}

// failing fails a record for good if the expression fails for it. It evaluates the
// expression only after a first failure for any record, once for each record, and not
// at a retry.
func (w *when) failing(next sluice.Handler) sluice.Handler {
	return func(ctx context.Context, rec *sluice.Record) error {
		if !w.fails.Load() {
			return next(ctx, rec)
		}
		if _, err := w.match(rec); err != nil {
			return sluice.Permanent(err)
		}
		err := next(ctx, rec)
		part, ok := errors.AsType[*sluice.Remaining](err)
		if ok || err == nil || sluice.IsSkip(err) || sluice.IsPermanent(err) {
			if ok && part.Rest == nil {
				part.Rest = next
			}
			return err
		}
		return &sluice.Remaining{Rest: next, Err: err}
	}
}

// needs returns the options of a route that reads the images v.
func needs(v item.View) (opts []router.Option) {
	if v&item.NewImage != 0 {
		opts = append(opts, router.NeedsNew())
	}
	if v&item.OldImage != 0 {
		opts = append(opts, router.NeedsOld())
	}
	return opts
}

// when compiles the expression at a field of the file. Its error is an *Error.
func (c *Config) when(field, text string, names ...string) (*when, error) {
	w, err := compile(text, c.EntityType.resolver(), names...)
	if err != nil {
		return nil, c.source().expression(field, err)
	}
	return w, nil
}

// Expression compiles an expression like a route's when, with the entity types of the
// configuration. The function reports whether a record fulfils the expression. Its
// errors are about types, and occur for the same record again. It is safe for
// concurrent use.
func (c *Config) Expression(text string) (func(*sluice.Record) (bool, error), error) {
	w, err := compile(text, c.EntityType.resolver())
	if err != nil {
		return nil, fmt.Errorf("expression %q: %w", text, err)
	}
	return w.match, nil
}

// itemWhen is a compiled expression over an item, which is its variable new.
func (c *Config) itemWhen(field, text string) (itemWhen, error) {
	w, err := c.when(field, text, itemNames...)
	if err != nil {
		return nil, err
	}
	return func(it sluice.Item) (bool, error) { return w.match(&sluice.Record{New: it}) }, nil
}

// expression makes an error for an expression at a field, with its place in the file if
// known.
func (d *source) expression(field string, err error) *Error {
	e := d.fault(field, "%s", d.detail(field, err))
	at, ok := errors.AsType[*exprError](err)
	_, substituted := d.from[field]
	if p := d.where(field); ok && !substituted && p.line > 0 && p.text >= 0 && at.line == 1 {
		e.Problem = at.problem
		e.Column = p.column + p.text + at.column
	}
	return e
}

// validateWhen notes the mistake of an expression, unless it is empty.
func (c *Config) validateWhen(path, text string, names ...string) {
	if text == "" || c.doc.bad[path] {
		return
	}
	if _, err := c.when(path, text, names...); err != nil {
		c.doc.errs = append(c.doc.errs, err.(*Error))
	}
}

// readsItem reports whether the condition of a route reads the item.
func (c *Config) readsItem(r *Route) bool {
	w, err := compile(r.When, c.EntityType.resolver())
	return r.When != "" && err == nil && w.reads() != 0
}
