package checks

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// schema describes a resource, or a block in it, in a version of the AWS provider.
// testdata has the schemas of the oldest allowed version and of a new one, extracted by
// tools/deploy/awsschema.
type schema struct {
	Required, Single bool
	Attributes       map[string]string // such as "required string"
	Blocks           map[string]schema
}

type provider struct {
	Provider  string
	Resources map[string]schema
}

func providers(t *testing.T) (all []provider) {
	t.Helper()
	files, err := filepath.Glob("testdata/aws-*.json")
	if err != nil || len(files) != 2 {
		t.Fatalf("%d extracts of the AWS provider, want 2: %v", len(files), err)
	}
	for _, name := range files {
		var p provider
		if err := json.Unmarshal([]byte(read(t, name)), &p); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(p.Resources) < 15 || filepath.Base(name) != "aws-"+p.Provider+".json" {
			t.Fatalf("%s has %d resources of version %s", name, len(p.Resources), p.Provider)
		}
		all = append(all, p)
	}
	return all
}

func TestTerraformIsWhatTheProviderKnows(t *testing.T) {
	for _, p := range providers(t) {
		for _, dir := range []string{"lambda/terraform", "ecs/terraform"} {
			m := terraform(t, deploy, dir)
			for _, w := range p.wrong(m) {
				t.Errorf("%s, AWS provider %s: %s", dir, p.Provider, w)
			}
			version := m.required("aws")
			if !strings.HasPrefix(version, ">= 5.40,") || !strings.HasSuffix(version, "< 7.0") {
				t.Errorf("%s allows %q; testdata has extracts of 5.40 and of 6", dir, version)
			}
		}
	}
}

// required is the version of a provider that the module asks for.
func (m module) required(name string) string {
	m.t.Helper()
	for _, b := range m.blocks {
		if b.Type == "terraform" {
			return b.block("required_providers").value(name).GetAttr("version").AsString()
		}
	}
	m.t.Fatal("no block terraform")
	return ""
}

// wrong returns the mistakes that the provider would refuse.
func (p provider) wrong(m module) (all []string) {
	for _, b := range m.blocks {
		if b.Type != "resource" && b.Type != "data" {
			continue
		}
		kind := b.Labels[0]
		if b.Type == "data" {
			kind = "data." + kind
		}
		s, ok := p.Resources[kind]
		if !ok {
			all = append(all, b.name+": there is no extract of "+kind)
			continue
		}
		all = append(all, s.wrong(b.Block.Body, b.eval, b.name, true)...)
	}
	for _, b := range m.blocks {
		for _, use := range attributes(b.Block.Body) {
			if s, ok := p.Resources[use.kind]; ok && s.Attributes[use.attribute] == "" && !has(s.Blocks, use.attribute) {
				all = append(all, fmt.Sprintf("%s: %s has no %s to read", b.name, use.kind, use.attribute))
			}
		}
	}
	return all
}

// Terraform's own, of every resource.
var (
	metaAttributes = []string{"count", "for_each", "depends_on", "provider"}
	metaBlocks     = []string{"lifecycle", "provisioner", "connection"}
)

func (s schema) wrong(body *hclsyntax.Body, eval *hcl.EvalContext, name string, top bool) (all []string) {
	for _, k := range slices.Sorted(maps.Keys(body.Attributes)) {
		if top && slices.Contains(metaAttributes, k) {
			continue
		}
		expr := body.Attributes[k].Expr
		how, kind, ok := strings.Cut(s.Attributes[k], " ")
		switch {
		case !ok && has(s.Blocks, k):
			all = append(all, fmt.Sprintf("%s: %s is a block", name, k))
		case !ok:
			all = append(all, fmt.Sprintf("%s has no attribute %s", name, k))
		case how == "computed":
			all = append(all, fmt.Sprintf("%s: %s cannot be set", name, k))
		case !fits(expr, eval, kind):
			all = append(all, fmt.Sprintf("%s: %s is no %s", name, k, kind))
		}
	}
	n := map[string]int{}
	for _, b := range body.Blocks {
		kind, inner := b.Type, b.Body
		if kind == "dynamic" {
			kind = b.Labels[0]
			for _, c := range b.Body.Blocks {
				inner = c.Body
			}
		}
		if top && slices.Contains(metaBlocks, kind) {
			continue
		}
		n[kind]++
		of, ok := s.Blocks[kind]
		switch {
		case !ok && s.Attributes[kind] != "":
			all = append(all, fmt.Sprintf("%s: %s is an attribute", name, kind))
		case !ok:
			all = append(all, fmt.Sprintf("%s has no block %s", name, kind))
		default:
			all = append(all, of.wrong(inner, eval, name+"."+kind, false)...)
		}
		if of.Single && n[kind] > 1 {
			all = append(all, fmt.Sprintf("%s: %s is there twice", name, kind))
		}
	}
	for _, k := range slices.Sorted(maps.Keys(s.Attributes)) {
		if strings.HasPrefix(s.Attributes[k], "required ") && body.Attributes[k] == nil {
			all = append(all, name+" lacks "+k)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(s.Blocks)) {
		if s.Blocks[k].Required && n[k] == 0 {
			all = append(all, name+" lacks "+k)
		}
	}
	return all
}

// fits reports whether an expression can be of a kind. It checks literals, lists and
// maps. It accepts every reference.
func fits(expr hclsyntax.Expression, eval *hcl.EvalContext, kind string) bool {
	switch expr.(type) {
	case *hclsyntax.TupleConsExpr:
		return kind == "list" || kind == "set"
	case *hclsyntax.ObjectConsExpr:
		return kind == "map"
	case *hclsyntax.TemplateExpr, *hclsyntax.TemplateWrapExpr:
		if v, diags := expr.Value(eval); diags.HasErrors() || !v.IsKnown() {
			return kind == "string"
		}
	}
	v, diags := expr.Value(eval)
	if diags.HasErrors() {
		return true
	}
	switch kind {
	case "string":
		return v.Type().IsPrimitiveType()
	case "number", "bool": // "1" would be converted; it is written as what it is all the same
		return v.Type().FriendlyName() == kind
	default:
		return v.CanIterateElements() && v.Type() != cty.String
	}
}

type attribute struct{ kind, attribute string }

// attributes are those of resources that expressions read.
func attributes(body *hclsyntax.Body) (all []attribute) {
	add := func(source, more hcl.Traversal) {
		if source.IsRelative() {
			return
		}
		names := []string{source.RootName()}
		for _, step := range append(source[1:len(source):len(source)], more...) {
			if a, ok := step.(hcl.TraverseAttr); ok { // [0] stands between
				names = append(names, a.Name)
			}
		}
		if names[0] == "data" && len(names) > 1 {
			names = append([]string{"data." + names[1]}, names[2:]...)
		}
		if len(names) > 2 {
			all = append(all, attribute{names[0], names[2]})
		}
	}
	for _, a := range body.Attributes {
		_ = hclsyntax.VisitAll(a.Expr, func(n hclsyntax.Node) hcl.Diagnostics {
			switch e := n.(type) {
			case *hclsyntax.ScopeTraversalExpr:
				add(e.Traversal, nil)
			case *hclsyntax.SplatExpr:
				source, ok := e.Source.(*hclsyntax.ScopeTraversalExpr)
				each, isRelative := e.Each.(*hclsyntax.RelativeTraversalExpr)
				if ok && isRelative {
					add(source.Traversal, each.Traversal)
				}
			}
			return nil
		})
	}
	for _, b := range body.Blocks {
		all = append(all, attributes(b.Body)...)
	}
	return all
}

func has[V any](m map[string]V, key string) bool {
	_, ok := m[key]
	return ok
}

func TestWhatTheProviderRefusesIsFound(t *testing.T) {
	p := provider{Resources: map[string]schema{
		"aws_a": {
			Attributes: map[string]string{"name": "required string", "size": "optional number", "zones": "optional set", "tags": "optional map", "arn": "computed string"},
			Blocks: map[string]schema{
				"one":  {Single: true, Attributes: map[string]string{"on": "required bool"}},
				"many": {Attributes: map[string]string{"key": "optional string"}},
			},
		},
		"data.aws_b": {Attributes: map[string]string{"id": "computed string"}, Blocks: map[string]schema{"must": {Required: true}}},
	}}
	for text, want := range map[string]string{
		`resource "aws_a" "x" {
			name  = "x"
			size  = local.n
			zones = ["a"]
			tags  = { a = "b" }
			count = 1
			one { on = true }
			many { key = aws_a.x[0].arn }
			dynamic "many" {
				for_each = aws_a.x[*].arn
				content { key = many.value }
			}
			lifecycle { prevent_destroy = true }
		}`: "",
		`resource "aws_a" "x" { nome = "x" }`:                                                           "aws_a x has no attribute nome; aws_a x lacks name",
		"resource \"aws_a\" \"x\" {\nname = \"x\"\narn = \"y\"\n}":                                      "aws_a x: arn cannot be set",
		"resource \"aws_a\" \"x\" {\nname = [\"x\"]\n}":                                                 "aws_a x: name is no string",
		"resource \"aws_a\" \"x\" {\nname = \"x\"\nsize = \"big\"\n}":                                   "aws_a x: size is no number",
		"resource \"aws_a\" \"x\" {\nname = \"x\"\nzones = \"a\"\n}":                                    "aws_a x: zones is no set",
		"resource \"aws_a\" \"x\" {\nname = \"x\"\none = {}\n}":                                         "aws_a x: one is a block",
		"resource \"aws_a\" \"x\" {\nname = \"x\"\ntags {}\n}":                                          "aws_a x: tags is an attribute",
		"resource \"aws_a\" \"x\" {\nname = \"x\"\nmore {}\n}":                                          "aws_a x has no block more",
		"resource \"aws_a\" \"x\" {\nname = \"x\"\none {}\n}":                                           "aws_a x.one lacks on",
		"resource \"aws_a\" \"x\" {\nname = \"x\"\nmany { kay = 1 }\n}":                                 "aws_a x.many has no attribute kay",
		"resource \"aws_a\" \"x\" {\nname = \"x\"\nmany { for_each = 1 }\n}":                            "aws_a x.many has no attribute for_each",
		"resource \"aws_a\" \"x\" {\nname = \"x\"\ndynamic \"more\" {\nfor_each = []\ncontent {}\n}\n}": "aws_a x has no block more",
		"resource \"aws_a\" \"x\" {\nname = \"x\"\none { on = true }\none { on = true }\n}":             "aws_a x: one is there twice",
		"resource \"aws_a\" \"x\" {\nname = \"x\"\n}\noutput \"o\" { value = one(aws_a.x[*].nom) }":     "output o: aws_a has no nom to read",
		"resource \"aws_a\" \"x\" {\nname = \"${data.aws_b.y.nom}-a\"\n}":                               "aws_a x: data.aws_b has no nom to read",
		"resource \"aws_c\" \"x\" {}":                                                                   "aws_c x: there is no extract of aws_c",
		"data \"aws_b\" \"x\" {}":                                                                       "aws_b x lacks must",
	} {
		f, diags := hclsyntax.ParseConfig([]byte(text), "x.tf", hcl.InitialPos)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		m := module{t: t}
		eval := &hcl.EvalContext{Variables: map[string]cty.Value{"local": cty.ObjectVal(map[string]cty.Value{"n": cty.NumberIntVal(1)})}}
		for _, b := range f.Body.(*hclsyntax.Body).Blocks {
			m.blocks = append(m.blocks, block{t, strings.Join(b.Labels, " "), b, eval})
			if b.Type == "output" {
				m.blocks[len(m.blocks)-1].name = "output " + b.Labels[0]
			}
		}
		if got := strings.Join(p.wrong(m), "; "); got != want {
			t.Errorf("%s\n%q, want %q", text, got, want)
		}
	}
}
