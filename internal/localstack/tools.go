package localstack

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
)

// minJava is what the newest of the servers is compiled for.
const minJava = 17

// MissingToolError says that Java or Maven is not there or too old, and what
// to do about it.
type MissingToolError struct {
	Tool  string // "Java 17 or newer", "Maven"
	Found string // what was found instead; empty when nothing was
}

func (e *MissingToolError) Error() string {
	found := "none was found on PATH"
	if e.Found != "" {
		found = "found " + e.Found
	}
	return fmt.Sprintf(`%s is needed to run DynamoDB Local and ElasticMQ: %s
  Debian, Ubuntu:  sudo apt-get install openjdk-17-jre-headless maven
  macOS:           brew install openjdk@17 maven
  with Docker:     docker compose -f deploy/local/compose.yaml up -d
                   export %s=http://127.0.0.1:8000 %s=http://127.0.0.1:9324`,
		e.Tool, found, EnvDynamoDB, EnvSQS)
}

var javaVersion = regexp.MustCompile(`version "(\d+)`)

// findJava returns the java of JAVA_HOME, or else of PATH.
func findJava(ctx context.Context) (string, error) {
	missing := &MissingToolError{Tool: fmt.Sprintf("Java %d or newer", minJava)}
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
	// macOS has a java that only says where to get one.
	out, err := exec.CommandContext(ctx, path, "-version").CombinedOutput()
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	m := javaVersion.FindSubmatch(out)
	if err != nil || m == nil {
		missing.Found = fmt.Sprintf("%s, which answers to -version: %s", path, bytes.TrimSpace(out))
		return "", missing
	}
	if major, _ := strconv.Atoi(string(m[1])); major < minJava {
		missing.Found = fmt.Sprintf("%s, which is version %s", path, m[1])
		return "", missing
	}
	return path, nil
}
