package checks

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// module is a folder of Terraform files. The tests here check that all files parse, are
// formatted, and name existing things only. awsschema_test.go checks the attributes of
// resources.
type module struct {
	t      *testing.T
	blocks []block
	eval   *hcl.EvalContext
}

type block struct {
	t    *testing.T
	name string
	*hclsyntax.Block
	eval *hcl.EvalContext
}

func terraform(t *testing.T, path ...string) module {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(append(path, "*.tf")...))
	if err != nil || len(files) == 0 {
		t.Fatalf("no Terraform files in %v: %v", path, err)
	}
	m := module{t: t, eval: &hcl.EvalContext{Variables: map[string]cty.Value{}}}
	for _, name := range files {
		f, diags := hclsyntax.ParseConfig([]byte(read(t, name)), name, hcl.InitialPos)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		for _, b := range f.Body.(*hclsyntax.Body).Blocks {
			m.blocks = append(m.blocks, block{t, name + ": " + strings.Join(append([]string{b.Type}, b.Labels...), " "), b, m.eval})
		}
	}
	locals := map[string]cty.Value{}
	for _, b := range m.blocks {
		for name, a := range b.Body.Attributes {
			if v, diags := a.Expr.Value(nil); b.Type == "locals" && !diags.HasErrors() {
				locals[name] = v
			}
		}
	}
	m.eval.Variables["local"] = cty.ObjectVal(locals)
	return m
}

func (m module) resources(kind string) (all []block) {
	for _, b := range m.blocks {
		if b.Type == "resource" && b.Labels[0] == kind {
			all = append(all, b)
		}
	}
	return all
}

func (m module) resource(kind, name string) block {
	m.t.Helper()
	for _, b := range m.resources(kind) {
		if b.Labels[1] == name {
			return b
		}
	}
	m.t.Fatalf("there is no resource %s.%s", kind, name)
	return block{}
}

func (b block) block(kind string) block {
	b.t.Helper()
	for _, inner := range b.Body.Blocks {
		if inner.Type == kind {
			return block{b.t, b.name + "." + kind, inner, b.eval}
		}
	}
	b.t.Fatalf("%s has no %s", b.name, kind)
	return block{}
}

func (b block) has(attribute string) hclsyntax.Expression {
	b.t.Helper()
	a := b.Body.Attributes[attribute]
	if a == nil {
		b.t.Fatalf("%s has no %s", b.name, attribute)
	}
	return a.Expr
}

func (b block) value(attribute string) cty.Value {
	b.t.Helper()
	v, diags := b.has(attribute).Value(b.eval)
	if diags.HasErrors() {
		b.t.Fatalf("%s.%s: %v", b.name, attribute, diags)
	}
	return v
}

func (b block) is(attribute, want string) {
	b.t.Helper()
	got, err := convert.Convert(b.value(attribute), cty.String)
	if err != nil || got.AsString() != want {
		b.t.Errorf("%s.%s is %#v, want %q", b.name, attribute, got, want)
	}
}

func (b block) num(attribute string) float64 {
	b.t.Helper()
	n, _ := b.value(attribute).AsBigFloat().Float64()
	return n
}

func (b block) list(attribute string) (all []string) {
	b.t.Helper()
	for _, v := range b.value(attribute).AsValueSlice() {
		all = append(all, v.AsString())
	}
	return all
}

func TestTerraformNamesOnlyWhatIsThere(t *testing.T) {
	for _, dir := range []string{"lambda/terraform", "ecs/terraform"} {
		m := terraform(t, deploy, dir)
		known := map[string]bool{}
		used := map[string]bool{}
		for _, b := range m.blocks {
			switch b.Type {
			case "variable":
				known["var."+b.Labels[0]] = true
				if b.Body.Attributes["type"] == nil || b.Body.Attributes["description"] == nil {
					t.Errorf("%s: has no type or no description", b.name)
				}
			case "locals":
				for name := range b.Body.Attributes {
					known["local."+name] = true
				}
			case "resource":
				known[strings.Join(b.Labels, ".")] = true
			case "data":
				known["data."+strings.Join(b.Labels, ".")] = true
			}
		}
		for _, b := range m.blocks {
			if b.Type == "variable" { // their types are written like references
				continue
			}
			for _, v := range references(b.Block.Body, nil) {
				used[v] = true
				if !known[v] {
					t.Errorf("%s: %s is not declared", b.name, v)
				}
			}
		}
		for v := range known {
			if strings.HasPrefix(v, "var.") && !used[v] {
				t.Errorf("%s: %s is never used", dir, v)
			}
		}
	}
}

// references returns the names in a body's expressions, such as var.x, aws_x.y and
// data.aws_x.y, without the iterators of dynamic blocks.
func references(body *hclsyntax.Body, iterators []string) (all []string) {
	for _, a := range body.Attributes {
		for _, v := range a.Expr.Variables() {
			parts := []string{v.RootName()}
			for _, step := range v[1:] {
				if s, ok := step.(hcl.TraverseAttr); ok {
					parts = append(parts, s.Name)
				} else {
					break
				}
			}
			n := 2
			switch root := parts[0]; {
			case root == "each" || root == "count" || root == "path" || slices.Contains(iterators, root):
				continue
			case root == "data":
				n = 3
			}
			all = append(all, strings.Join(parts[:min(n, len(parts))], "."))
		}
	}
	for _, b := range body.Blocks {
		inner := iterators
		if b.Type == "dynamic" {
			inner = append(inner[:len(inner):len(inner)], b.Labels[0])
		}
		all = append(all, references(b.Body, inner)...)
	}
	return all
}

func TestTerraformIsFormatted(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(deploy, "*/terraform/*.tf"))
	if err != nil || len(files) < 6 {
		t.Fatalf("only %d files found: %v", len(files), err)
	}
	for _, name := range files {
		got, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(hclwrite.Format(got), got) {
			t.Errorf("%s: terraform fmt would change it", name)
		}
	}
}
