package checks

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// actionsOf are the actions that a call needs, where they have other names.
var actionsOf = map[string][]string{
	"dynamodb:CreateTable":             {"dynamodb:CreateTable", "dynamodb:TagResource"}, // with tags
	"dynamodb:TransactWriteItems":      {"dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem", "dynamodb:ConditionCheckItem"},
	"sqs:SendMessageBatch":             {"sqs:SendMessage"},
	"sqs:DeleteMessageBatch":           {"sqs:DeleteMessage"},
	"sqs:ChangeMessageVisibilityBatch": {"sqs:ChangeMessageVisibility"},
}

// useOf are the folders of code that belong to one use alone, and its policy.
var useOf = map[string]string{
	"internal/accounts": "assume-role.json",
	"sources/poller":    "streams.json",
	"internal/snapshot": "backfill.json",
	"sources/queue":     "consume.json",
	"sinks/sqs":         "send.json",
	"internal/rows":     "state.json",
	"state/dynamostate": "state-create.json",
}

// trust is the trust policy of a role, which has no permissions.
const trust = "trust.json"

func TestPoliciesAllowWhatTheCodeCallsAndNoMore(t *testing.T) {
	needed := map[string]string{}   // action to a place of the code
	within := map[string][]string{} // folder to the actions of its calls
	for _, c := range calls(t) {
		actions, ok := actionsOf[c.operation]
		if !ok {
			actions = []string{c.operation}
		}
		for _, a := range actions {
			needed[a] = c.place
			within[c.folder] = append(within[c.folder], a)
		}
	}
	if len(needed) < 15 {
		t.Fatalf("only %d actions found in the code: %v", len(needed), needed)
	}

	files, err := filepath.Glob(filepath.Join(deploy, "iam/*.json"))
	if err != nil || len(files) < 8 {
		t.Fatalf("only %d policies found: %v", len(files), err)
	}
	table := read(t, deploy, "iam/README.md")
	allowed := map[string]bool{}
	for _, name := range files {
		if !strings.Contains(table, "("+filepath.Base(name)+")") {
			t.Errorf("iam/README.md does not name %s", name)
		}
		policy := jsonFile(t, name)
		policy.at("Version").is("2012-10-17")
		for _, s := range policy.at("Statement").list() {
			s.at("Effect").is("Allow")
			if filepath.Base(name) == trust { // the role is its resource
				s.at("Principal", "AWS").is("arn:aws:iam::ACCOUNT:role/SLUICE")
				s.at("Condition", "StringEquals", "sts:ExternalId").is("EXTERNAL-ID")
				s.at("Action", 0).is("sts:AssumeRole")
				continue
			}
			for _, r := range s.at("Resource").list() {
				if r.text() == "*" && (len(s.at("Action").list()) != 1 || s.at("Action", 0).text() != "dynamodb:ListStreams") {
					t.Errorf("%s allows it on everything", s.name)
				}
			}
			for _, a := range s.at("Action").list() {
				action := a.text()
				allowed[action] = true
				if !strings.Contains(table, "`"+action+"`") {
					t.Errorf("%s: iam/README.md does not say why %s", name, action)
				}
				service, _, _ := strings.Cut(action, ":")
				if slices.Contains([]string{"dynamodb", "sqs", "sts"}, service) && needed[action] == "" {
					t.Errorf("%s allows %s, which nothing calls", name, action)
				}
			}
		}
	}
	for folder, file := range useOf {
		if len(within[folder]) == 0 {
			t.Errorf("%s calls nothing: has it moved?", folder)
		}
		text := read(t, deploy, "iam", file)
		for _, action := range within[folder] {
			if !strings.Contains(text, `"`+action+`"`) {
				t.Errorf("%s calls %s, which iam/%s does not allow", folder, action, file)
			}
		}
	}
	for _, action := range slices.Sorted(maps.Keys(needed)) {
		if !allowed[action] {
			t.Errorf("%s calls %s, which no policy of deploy/iam allows", needed[action], action)
		}
	}
}

// askedBy are the files of a use that calls a store, by its policy. Their calls show
// the needed actions.
var askedBy = map[string][]string{
	"audit.json":    {"cmd/sluice/audit.go", "internal/snapshot/client.go"},
	"cascade.json":  {"internal/config/cascade.go"},
	"count.json":    {"internal/config/count.go", "handlers/rollup/count.go", "handlers/rollup/orphan.go", "handlers/rollup/rollup.go", "handlers/rollup/uncounted.go"},
	"escalate.json": {"internal/config/escalate.go", "internal/config/ladder.go", "handlers/escalation/claim.go", "handlers/escalation/resume.go"},
	"recount.json":  {"internal/config/recount.go", "cmd/sluice/recount.go", "handlers/rollup/recount.go"},
}

var storeActions = map[string]string{
	`\bstore\.Get\b`:              "dynamodb:GetItem",
	`\bstore\.Query\b`:            "dynamodb:Query",
	`\bstore\.DeleteGuarded\b`:    "dynamodb:BatchWriteItem",
	`\bstore\.DeleteGuarded`:      "dynamodb:DeleteItem", // by condition
	`\bstore\.KeyNames\b`:         "dynamodb:DescribeTable",
	`\bdynamo\.(Put|NewMarker)\(`: "dynamodb:PutItem",
	`\bdynamo\.(Update\(|Add\{)`:  "dynamodb:UpdateItem",
	`\bdynamo\.Delete\(`:          "dynamodb:DeleteItem",
	`\bdynamo\.Check\(`:           "dynamodb:ConditionCheckItem",
	`\.Scan\(`:                    "dynamodb:Scan",
}

func TestPoliciesAllowWhatUsesAskOfTables(t *testing.T) {
	for file, sources := range askedBy {
		asked := map[string]bool{"dynamodb:DescribeTable": true} // for the check at the start, too
		for _, source := range sources {
			text := read(t, root, source)
			for pattern, action := range storeActions {
				if regexp.MustCompile(pattern).MatchString(text) {
					asked[action] = true
				}
			}
		}
		allowed := map[string]bool{}
		for _, list := range jsonFile(t, deploy, "iam", file).values("Action") {
			for _, a := range list.list() {
				if strings.HasPrefix(a.text(), "dynamodb:") {
					allowed[a.text()] = true
				}
			}
		}
		if len(asked) < 3 || !maps.Equal(allowed, asked) {
			t.Errorf("iam/%s allows %v, and %v ask for %v", file, slices.Sorted(maps.Keys(allowed)), sources, slices.Sorted(maps.Keys(asked)))
		}
	}
}

type call struct{ operation, place, folder string }

// calls are the operations of AWS that the daemon and the function are built
// with: those whose input they name.
func calls(t *testing.T) (all []call) {
	t.Helper()
	const sdk = "github.com/aws/aws-sdk-go-v2/service/"
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", `{{if not .Standard}}{{$d := .Dir}}{{range .GoFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}{{end}}`,
		"./cmd/sluice", "./cmd/sluice-lambda")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	base, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.Lines(string(out)) {
		name = strings.TrimSpace(name)
		rel, err := filepath.Rel(base, name)
		if err != nil || strings.HasPrefix(rel, "..") || strings.HasPrefix(rel, "examples/") {
			continue
		}
		if strings.HasPrefix(rel, "internal/demo/") { // it makes tables and queues on local servers only
			continue
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		services := map[string]string{} // by the name that the file has for them
		for _, imp := range f.Imports {
			path, _ := strconv.Unquote(imp.Path.Value)
			if strings.HasSuffix(path, "/credentials/stscreds") { // the SDK calls
				all = append(all, call{"sts:AssumeRole", rel, filepath.Dir(rel)})
			}
			service, ok := strings.CutPrefix(path, sdk)
			if !ok || strings.Contains(service, "/") {
				continue
			}
			local := service
			if imp.Name != nil {
				local = imp.Name.Name
			}
			switch service {
			case "dynamodb", "sqs", "sts":
			case "dynamodbstreams": // its actions are of dynamodb
				service = "dynamodb"
			default:
				t.Errorf("%s imports %s, whose actions this test does not know", rel, path)
			}
			services[local] = service
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && services[x.Name] != "" {
					if op, ok := strings.CutSuffix(s.Sel.Name, "Input"); ok {
						all = append(all, call{services[x.Name] + ":" + op, rel + ":" + strconv.Itoa(fset.Position(s.Pos()).Line), filepath.Dir(rel)})
					}
				}
			}
			return true
		})
	}
	return all
}
