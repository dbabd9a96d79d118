// Command awsschema extracts the schema of some resources from the AWS provider of
// Terraform, by the generated bindings, and prints it for deploy/checks:
//
//	npm pack @cdktf/provider-aws@21.22.1 && tar xf cdktf-provider-aws-21.22.1.tgz
//	go -C tools/deploy run ./awsschema $PWD/package aws_sqs_queue data.aws_region > deploy/checks/testdata/aws-6.25.0.json
package main

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

type provider struct {
	Source    string           `json:"source"`
	Provider  string           `json:"provider"`
	Resources map[string]block `json:"resources"` // data sources as data.NAME
}

// block is a resource, or a block within.
type block struct {
	Required bool `json:"required,omitempty"`
	// Single is a block that may be there once.
	Single     bool              `json:"single,omitempty"`
	Attributes map[string]string `json:"attributes"` // such as "required string"
	Blocks     map[string]block  `json:"blocks,omitempty"`
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "awsschema:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 2 {
		return errors.New("want the folder of the package, then the names of resources")
	}
	var about struct {
		Name, Version string
		Cdktf         struct {
			Provider struct{ Name, Version string }
		}
	}
	b, err := os.ReadFile(filepath.Join(args[0], "package.json"))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, &about); err != nil {
		return err
	}
	p := provider{
		Source:    about.Name + " " + about.Version,
		Provider:  about.Cdktf.Provider.Version,
		Resources: map[string]block{},
	}
	for _, name := range args[1:] {
		folder := strings.ReplaceAll(strings.Replace(strings.Replace(name, "data.aws_", "data-aws-", 1), "aws_", "", 1), "_", "-")
		text, err := source(filepath.Join(args[0], "lib", folder, "index.js"))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		f := file{text, map[string]string{}}
		root := ""
		for _, m := range class.FindAllStringSubmatchIndex(text, -1) {
			body := text[m[1]:]
			if end := strings.Index(body, "\n}\n"); end >= 0 {
				body = body[:end]
			}
			f.classes[text[m[2]:m[3]]] = body
			if strings.HasPrefix(text[m[4]:m[5]], "Terraform") {
				root = text[m[2]:m[3]]
			}
		}
		if root == "" {
			return fmt.Errorf("%s: no class of a resource in %s", name, folder)
		}
		p.Resources[name] = f.block(root, f.classes[root])
	}
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", " ")
	return out.Encode(p)
}

var (
	class     = regexp.MustCompile(`(?m)^export class (\w+) extends cdktf\.(\w+) \{$`)
	field     = regexp.MustCompile(`(?m)^  // (\w+) - computed: (\w+), optional: (\w+), required: (\w+)\n(.*(?:\n.*)?)`)
	made      = regexp.MustCompile(`= new (\w+)\(this`)
	getter    = regexp.MustCompile(`get(\w+)Attribute\(`)
	settable  = regexp.MustCompile(`(?m)^ +(\w+): \{\n.*\n +isBlock: (true|false),\n +type: "(\w+)",\n +storageClassType: "(\w+)"`)
	reference = regexp.MustCompile(`(OutputReference|List)$`)
)

// source returns the TypeScript behind a file, from its source map. It has details
// of attributes that the JavaScript lacks.
func source(path string) (string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	_, encoded, ok := strings.Cut(string(b), "sourceMappingURL=data:application/json;base64,")
	if !ok {
		return "", fmt.Errorf("%s has no source map", path)
	}
	if b, err = base64.StdEncoding.DecodeString(strings.TrimSpace(encoded)); err != nil {
		return "", err
	}
	var m struct{ SourcesContent []string }
	if err := json.Unmarshal(b, &m); err != nil || len(m.SourcesContent) != 1 {
		return "", fmt.Errorf("%s: a source map without its source: %w", path, err)
	}
	return m.SourcesContent[0], nil
}

type file struct {
	text    string
	classes map[string]string
}

// block reads a class's fields; hcl is the text that says which of them are blocks.
func (f file) block(name, hcl string) block {
	b := block{Attributes: map[string]string{}, Blocks: map[string]block{}}
	types := map[string][]string{}
	for _, m := range settable.FindAllStringSubmatch(hcl, -1) {
		types[m[1]] = m[2:]
	}
	for _, m := range field.FindAllStringSubmatch(f.classes[name], -1) {
		attribute, computed, optional, required := m[1], m[2] == "true", m[3] == "true", m[4] == "true"
		t := types[attribute]
		if t != nil && t[0] == "true" {
			inner := made.FindStringSubmatch(m[5])[1]
			base := reference.ReplaceAllString(inner, "")
			in := f.block(base+"OutputReference", f.function(base))
			in.Required, in.Single = required, !strings.HasSuffix(inner, "List")
			b.Blocks[attribute] = in
			continue
		}
		kind := ""
		switch {
		case t == nil:
			if g := getter.FindStringSubmatch(m[5]); g != nil {
				kind = strings.ToLower(g[1])
			} else {
				kind = "object"
			}
		case t[1] == "simple":
			kind = strings.Replace(t[2], "boolean", "bool", 1)
		default:
			kind = t[1]
		}
		switch {
		case required:
			b.Attributes[attribute] = "required " + kind
		case optional && t != nil:
			b.Attributes[attribute] = "optional " + kind
		case computed:
			b.Attributes[attribute] = "computed " + kind
		}
	}
	return b
}

// function is the text of what writes a block as HCL.
func (f file) function(base string) string {
	start := strings.Index(f.text, "export function "+strings.ToLower(base[:1])+base[1:]+"ToHclTerraform(")
	if start < 0 {
		return ""
	}
	text := f.text[start:]
	return text[:strings.Index(text, "\n}\n")]
}
