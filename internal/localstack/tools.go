package localstack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
)

// java is what a server needs of it.
type java struct {
	major    int  // at least
	compiler bool // it runs from source
	anywhere bool // not only that of JAVA_HOME or PATH
}

func (j java) String() string {
	if j.compiler {
		return fmt.Sprintf("a JDK (Java with its compiler), version %d or newer,", j.major)
	}
	return fmt.Sprintf("Java %d or newer", j.major)
}

// MissingToolError says that Java or Maven is not there or too old, and what
// to do about it.
type MissingToolError struct {
	Tool  string // "Java 17 or newer", maven
	Found string // what was found instead; empty if nothing
}

func (e *MissingToolError) Error() string {
	found := "none was found on PATH"
	if e.Found != "" {
		found = "found " + e.Found
	}
	return fmt.Sprintf(`%s is needed to run the local servers: %s
  Debian, Ubuntu:  sudo apt-get install openjdk-17-jdk-headless maven
  macOS:           brew install openjdk@17 maven
  with Docker:     docker compose -f deploy/local/compose.yaml up -d
                   (in a clone, or in the unpacked compose bundle of a release)
                   export %s=http://127.0.0.1:8000 %s=http://127.0.0.1:9324
                   export %s=http://127.0.0.1:9200 %s=http://127.0.0.1:9201`,
		e.Tool, found, EnvDynamoDB, EnvSQS, EnvOpenSearch, EnvOpenSearch3)
}

const maven = "Maven"

var javaVersion = regexp.MustCompile(`version "(\d+)`)

// findJava returns the java of JAVA_HOME, or else of PATH, if it is what need
// says.
func findJava(ctx context.Context, need java) (string, error) {
	missing := &MissingToolError{Tool: need.String()}
	name := "java"
	if home := os.Getenv("JAVA_HOME"); home != "" {
		name = filepath.Join(home, "bin", "java")
	}
	path, err := exec.LookPath(name)
	if err != nil {
		if name != "java" {
			missing.Found = "no " + name + ", to which JAVA_HOME points"
		}
		return "", missing
	}
	major, answer := javaMajor(ctx, path)
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case major == 0:
		missing.Found = fmt.Sprintf("%s, which answers to -version: %s", path, answer)
		return "", missing
	case major < need.major:
		missing.Found = fmt.Sprintf("%s, which is version %d", path, major)
		return "", missing
	case need.compiler && !hasCompiler(path):
		missing.Found = path + ", which has no javac beside it"
		return "", missing
	}
	return path, nil
}

// javaMajor asks a java for its version. It returns 0 and the output if there is
// none: macOS has a java that only prints where to get one.
func javaMajor(ctx context.Context, path string) (major int, answer []byte) {
	out, err := exec.CommandContext(ctx, path, "-version").CombinedOutput()
	if m := javaVersion.FindSubmatch(out); err == nil && m != nil {
		major, _ = strconv.Atoi(string(m[1]))
	}
	return major, bytes.TrimSpace(out)
}

// hasCompiler reports whether java stands in a JDK. On PATH it is often a link
// into one.
func hasCompiler(java string) bool {
	folders := []string{filepath.Dir(java)}
	if target, err := filepath.EvalSymlinks(java); err == nil {
		folders = append(folders, filepath.Dir(target))
	}
	for _, dir := range folders {
		if _, err := os.Stat(filepath.Join(dir, "javac")); err == nil {
			return true
		}
	}
	return false
}

// javaHomes are where systems keep their Javas: Debian and Fedora, SDKMAN (below
// the user's home), what macOS's java_home lists, and Homebrew.
var javaHomes = []string{
	"/usr/lib/jvm/*",
	"~/.sdkman/candidates/java/*",
	"/Library/Java/JavaVirtualMachines/*/Contents/Home",
	"~/Library/Java/JavaVirtualMachines/*/Contents/Home",
	"/opt/homebrew/opt/openjdk*",
	"/usr/local/opt/openjdk*",
}

// searchJava returns findJava's or, when that will not do and need does not
// insist on it, the first in homes, which are patterns.
func searchJava(ctx context.Context, need java, homes []string) (string, error) {
	path, err := findJava(ctx, need)
	var missing *MissingToolError
	if !need.anywhere || !errors.As(err, &missing) {
		return path, err
	}
	user, _ := os.UserHomeDir()
	for _, pattern := range homes {
		if pattern[0] == '~' {
			pattern = user + pattern[1:]
		}
		found, _ := filepath.Glob(pattern)
		for _, home := range found {
			java := filepath.Join(home, "bin", "java")
			if major, _ := javaMajor(ctx, java); major >= need.major && (!need.compiler || hasCompiler(java)) {
				return java, nil
			}
		}
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	return "", err
}
