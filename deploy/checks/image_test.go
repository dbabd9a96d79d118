package checks

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestImagesAreSmallPinnedAndNotRoot(t *testing.T) {
	for _, name := range []string{"docker/Dockerfile", "docker/Dockerfile.lambda"} {
		text := read(t, deploy, name)
		stages := strings.Split(text, "\nFROM ")
		if len(stages) != 3 {
			t.Fatalf("%s: %d stages, want 2", name, len(stages)-1)
		}
		for _, s := range stages[1:] {
			if image := strings.Fields(strings.TrimPrefix(s, "--platform=$BUILDPLATFORM "))[0]; !regexp.MustCompile(`^[^:]+:.+`).MatchString(image) || strings.HasSuffix(image, ":latest") {
				t.Errorf("%s: %s has no version", name, image)
			}
		}
		last := stages[2]
		if !strings.HasPrefix(last, "gcr.io/distroless/static-") || !strings.Contains(last, "\nUSER 65532:65532\n") || strings.Contains(last, "\nRUN ") {
			t.Errorf("%s: the image is more than a static binary, or root's:\n%s", name, last)
		}
		if !strings.Contains(text, "CGO_ENABLED=0") || !strings.Contains(text, "GOARCH=${TARGETARCH}") {
			t.Errorf("%s: the binary is not static, or of one architecture only", name)
		}
		// BuildKit takes a default before the platform that was asked for.
		if !strings.Contains(stages[1], "\nARG TARGETARCH\n") || regexp.MustCompile(`(?m)^ARG TARGET\w+=`).MatchString(text) {
			t.Errorf("%s: want ARG TARGETARCH in the stage that builds, and without a default: an image of arm64 would have a binary of amd64", name)
		}
	}
	for _, want := range []string{"SLUICE_STATE=/var/lib/sluice/", "SLUICE_CONFIG=/etc/sluice/sluice.yaml", "--chown=65532:65532 --chmod=0700 /out/state /var/lib/sluice"} {
		if !strings.Contains(read(t, deploy, "docker/Dockerfile"), want) {
			t.Errorf("Dockerfile lacks %s", want)
		}
	}
}

// The build in an image has the module without the files in .dockerignore.
func TestImagesHaveWhatTheBuildReads(t *testing.T) {
	ignored := patterns(t, ".dockerignore")
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", `{{if .Module}}{{if .Module.Main}}{{$d := .Dir}}{{range .GoFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}{{range .EmbedFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}{{end}}{{end}}`,
		"./cmd/sluice", "./cmd/sluice-lambda")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	base, _ := filepath.Abs(root)
	files := strings.Fields(string(out))
	if len(files) < 100 {
		t.Fatalf("only %d files found", len(files))
	}
	for _, f := range files {
		rel, err := filepath.Rel(base, f)
		if err != nil {
			t.Fatal(err)
		}
		for _, pattern := range ignored {
			plain := !strings.Contains(pattern, "*") && (rel == pattern || strings.HasPrefix(rel, pattern+"/"))
			glob, _ := filepath.Match(strings.TrimPrefix(pattern, "**/"), filepath.Base(rel))
			if plain || strings.HasPrefix(pattern, "**/") && glob {
				t.Errorf(".dockerignore leaves out %s by %s", rel, pattern)
			}
		}
	}
}

// Images have no files that are never committed: binaries, and a state file with its
// dead letters. The function's image has the configuration.
func TestImagesAreBuiltWithoutWhatIsNotCommitted(t *testing.T) {
	ignored := patterns(t, ".dockerignore")
	for _, pattern := range patterns(t, ".gitignore") {
		want, atRoot := strings.CutPrefix(strings.TrimSuffix(pattern, "/"), "/")
		if !atRoot {
			want = "**/" + want
		}
		if slices.Contains(ignored, want) == (want == "sluice.yaml") {
			t.Errorf(".gitignore has %s, .dockerignore %q: want all of it there but sluice.yaml", pattern, ignored)
		}
	}
	if slices.Contains(ignored, ".git") {
		t.Error(".dockerignore leaves out .git, which has the version")
	}
}

// patterns are the lines of a file that are no comments.
func patterns(t *testing.T, name string) (all []string) {
	t.Helper()
	for line := range strings.Lines(read(t, root, name)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			all = append(all, line)
		}
	}
	return all
}
