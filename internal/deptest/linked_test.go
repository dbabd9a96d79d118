package deptest

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A Lambda function loads every linked package at each cold start. The test cache does
// not see the files that the go command reads. TestImports reads the same files itself.
func TestLinkedIntoLambda(t *testing.T) {
	if _, err := os.ReadFile(filepath.Join("..", "..", "go.mod")); err != nil {
		t.Fatal(err)
	}
	goFiles(t)
	never := []string{
		module + "/sources/poller", module + "/state", module + "/run", module + "/metrics/prom",
		"go.etcd.io/bbolt", "github.com/prometheus", "github.com/spf13", "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams",
		module + "/tracing", "go.opentelemetry.io", "google.golang.org", "testing",
	}
	for _, tt := range []struct {
		main  string
		never []string // besides
		allow []string // all the same

		tagged string // it is linked with the tag tracing
	}{
		{"internal/deptest/testdata/slim", []string{"github.com/aws/aws-sdk-go-v2", "github.com/aws/smithy-go"}, nil, ""},
		// Clients of the services that its routes call, STS for roles (150 µs of a
		// start), and nothing to look for credentials and Regions with.
		{"cmd/sluice-lambda", []string{
			"github.com/aws/aws-sdk-go-v2/config", "github.com/aws/aws-sdk-go-v2/service/sso",
			"github.com/aws/aws-sdk-go-v2/feature/ec2/imds",
		}, []string{
			// Of the SDK's attributevalue, which sdkitem offers: 50 µs of a start.
			"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types", "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/schemas",
			// Of the dead letters: a contract, without what keeps it.
			module + "/state",
		}, module + "/tracing"},
	} {
		out, err := exec.Command("go", "list", "-deps", module+"/"+tt.main).CombinedOutput()
		if err != nil {
			t.Fatalf("go list: %v\n%s", err, out)
		}
		linked := strings.Fields(string(out))
		for _, pkg := range linked {
			for _, bad := range append(tt.never, never...) {
				if slices.Contains(tt.allow, pkg) {
					continue
				}
				if pkg == bad || strings.HasPrefix(pkg, bad+"/") {
					t.Errorf("%s links %s; `go list -deps` and `go mod why` say by whom", tt.main, pkg)
				}
			}
		}
		if tt.tagged != "" {
			out, err := exec.Command("go", "list", "-deps", "-tags", "tracing", module+"/"+tt.main).CombinedOutput()
			if err != nil || !slices.Contains(strings.Fields(string(out)), tt.tagged) {
				t.Errorf("with the tag tracing, %s does not link %s: %v", tt.main, tt.tagged, err)
			}
		}
		if len(linked) < 20 {
			t.Errorf("%s links only %d packages: is the list broken?", tt.main, len(linked))
		}
	}
}

// A program links the clients of the services that its routes call, and the
// handlers that it uses.
func TestLinkedIntoPrograms(t *testing.T) {
	if _, err := os.ReadFile(filepath.Join("..", "..", "go.mod")); err != nil {
		t.Fatal(err)
	}
	goFiles(t)
	out, err := exec.Command("go", "list", "-deps", module+"/run").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for pkg := range strings.FieldsSeq(string(out)) {
		for _, never := range []string{module + "/handlers", module + "/sinks/opensearch", module + "/sinks/dynamodb", "github.com/opensearch-project", module + "/internal/config", "testing"} {
			if pkg == never || strings.HasPrefix(pkg, never+"/") {
				t.Errorf("run links %s", pkg)
			}
		}
	}
}
