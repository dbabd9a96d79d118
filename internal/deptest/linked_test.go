package deptest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What a Lambda function links it loads at every cold start. The go command
// reads go.mod and the source files out of sight of this test's cached result;
// TestImports reads the same files in sight of it.
func TestLinkedIntoLambda(t *testing.T) {
	if _, err := os.ReadFile(filepath.Join("..", "..", "go.mod")); err != nil {
		t.Fatal(err)
	}
	goFiles(t)
	never := []string{
		module + "/sources/poller", module + "/state", module + "/run", module + "/metrics/prom",
		"go.etcd.io/bbolt", "github.com/prometheus", "github.com/spf13", "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams",
		"testing",
	}
	for _, tt := range []struct {
		main  string
		never []string // besides
	}{
		{"internal/deptest/testdata/slim", []string{"github.com/aws/aws-sdk-go-v2", "github.com/aws/smithy-go"}},
	} {
		out, err := exec.Command("go", "list", "-deps", module+"/"+tt.main).CombinedOutput()
		if err != nil {
			t.Fatalf("go list: %v\n%s", err, out)
		}
		linked := strings.Fields(string(out))
		for _, pkg := range linked {
			for _, bad := range append(tt.never, never...) {
				if pkg == bad || strings.HasPrefix(pkg, bad+"/") {
					t.Errorf("%s links %s; `go list -deps` and `go mod why` say by whom", tt.main, pkg)
				}
			}
		}
		if len(linked) < 20 {
			t.Errorf("%s links only %d packages: is the list broken?", tt.main, len(linked))
		}
	}
}
