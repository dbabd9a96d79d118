package checks

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// Templates work in China and GovCloud, too: they ask for the partition.
func TestTemplatesFitEachPartition(t *testing.T) {
	// In China the principal of EC2, and of no other service here, has another name.
	one := regexp.MustCompile(`arn:aws:|"?ec2\.amazonaws\.com`)
	n := 0
	for _, dir := range []string{"ecs", "lambda"} {
		err := filepath.WalkDir(filepath.Join(deploy, dir), func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			n++
			text, err := os.ReadFile(path)
			for _, bad := range one.FindAllIndex(text, -1) {
				t.Errorf("%s: %q is of one partition only", path, text[bad[0]:min(bad[1]+20, len(text))])
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	if n < 10 {
		t.Errorf("only %d files", n)
	}
}
