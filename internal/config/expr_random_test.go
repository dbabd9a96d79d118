//go:build integration || long

package config

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/router"
)

// grammar makes valid expressions with every operator and function.
type grammar struct {
	*rand.Rand
	within bool // inside a condition
}

func (g *grammar) one(of ...string) string { return of[g.IntN(len(of))] }

func (g *grammar) any(depth int) string {
	if depth <= 0 {
		return g.one(`new.n`, `new.missing`, `new.deep.d.d`, `new.s`, `new.mixed`, `new["maps"]`, `new`, `old`, `nil`)
	}
	return g.one(g.text(depth-1), g.list(depth-1), g.number(depth-1), g.boolean(depth-1),
		`(`+g.boolean(depth-1)+` ? `+g.any(depth-1)+` : `+g.any(depth-1)+`)`, `(new.missing ?? `+g.any(depth-1)+`)`)
}

func (g *grammar) text(depth int) string {
	if depth <= 0 {
		return g.one(`new.s`, `old.s`, `new.c`, `"ɐ"`, `event`)
	}
	a, b := g.text(depth-1), g.text(depth-1)
	return g.one(`lower(`+a+`)`, `upper(`+a+`)`, `trim(`+a+`)`, `trim(`+a+`, `+b+`)`, `(`+a+` + `+b+`)`, `(new.none ?? `+a+`)`, a+`[1:]`)
}

func (g *grammar) list(depth int) string {
	if depth <= 0 {
		return g.one(`new.maps`, `old.maps`, `new.mixed`, `old.mixed`, `new.nulls`, `split(new.s, "x")`, `[1, "a", nil]`)
	}
	a := g.list(depth - 1)
	if g.within {
		return g.one(a, `[`+a+`, `+g.any(depth-1)+`]`, `split(`+g.text(depth-1)+`, `+g.text(0)+`)`, a+`[1:]`)
	}
	return g.one(`filter(`+a+`, `+g.condition(depth)+`)`, `map(`+a+`, `+g.element(depth)+`)`, `[`+a+`, `+g.any(depth-1)+`]`,
		`split(`+g.text(depth-1)+`, `+g.text(0)+`)`)
}

func (g *grammar) number(depth int) string {
	if depth <= 0 {
		return g.one(`new.n`, `7`, `-0.5`)
	}
	return g.one(`len(`+g.list(depth-1)+`)`, `len(`+g.text(depth-1)+`)`, `(`+g.number(depth-1)+` * `+g.number(depth-1)+`)`,
		`round(`+g.number(depth-1)+`)`, `indexOf(`+g.text(depth-1)+`, `+g.text(0)+`)`)
}

func (g *grammar) boolean(depth int) string {
	if depth <= 0 {
		return g.one(`new == old`, `new.maps != old.maps`, `event == "MODIFY"`, `old != nil`)
	}
	a, b := g.any(depth-1), g.any(depth-1)
	simple := []string{
		`(` + a + ` == ` + b + `)`, `(` + a + ` in ` + g.list(depth-1) + `)`, `(` + g.text(depth-1) + ` matches "(ɐ|ĩ)*x$")`,
		`(` + g.text(depth-1) + ` contains ` + g.text(depth-1) + `)`, `(` + g.number(depth-1) + ` < ` + g.number(depth-1) + `)`,
		`(` + g.boolean(depth-1) + ` && ` + g.boolean(depth-1) + `)`, `not (` + g.boolean(depth-1) + `)`, `("d" in new.deep)`,
	}
	if !g.within {
		list := g.list(depth - 1)
		for _, f := range []string{"all", "any", "none", "one"} {
			simple = append(simple, f+`(`+list+`, `+g.condition(depth)+`)`)
		}
	}
	return g.one(simple...)
}

// condition makes a condition over elements, which element makes.
func (g *grammar) condition(depth int) string {
	e, f := g.element(depth), g.element(depth)
	g.within = true
	defer func() { g.within = false }()
	return g.one(e+` == `+f, e+` in `+g.list(depth-1), `let x = `+e+`; x != `+f, g.boolean(depth-1), `# in old.mixed`)
}

func (g *grammar) element(depth int) string {
	g.within = true
	defer func() { g.within = false }()
	return g.one(`#`, `[#, #]`, `(#.a ?? #)`, g.any(depth-1), `((#.b ?? new.s) + `+g.text(depth-1)+`)`)
}

// An evaluation of any expression over any item ends when its work is spent. Its memory
// is little more than the counted work.
func TestWhenWorkOfAnyExpression(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	rec := hostile(t, 12_000, 30_000, 20_000, 30_000)
	g := &grammar{Rand: rand.New(rand.NewPCG(1, 2))}
	failed, most := 0, uint64(0)
	for range 60 {
		text := g.boolean(4)
		if _, err := compile(text, router.Attribute("entityType")); err != nil {
			if len(text) < 200 && !strings.Contains(err.Error(), "cannot") && !strings.Contains(err.Error(), "invalid") && !strings.Contains(err.Error(), "neither") {
				t.Errorf("%s: %v", text, err)
			}
			failed++
			continue
		}
		work, bytes, _, err := evaluated(t, text, rec)
		if most = max(most, bytes); bytes > mostBytes*5/4 {
			t.Errorf("%d bytes, work %d: %s: %v", bytes, work, text, err)
		}
	}
	t.Logf("%d do not compile, the most is %d bytes", failed, most)
}
