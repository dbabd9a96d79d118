// Command lambdafiles copies a configuration, as sluice.yaml, and the files that
// it names to the folder that a Lambda function is packed from. `make lambda`
// runs it.
package main

import (
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/sluicehq/sluice/internal/config"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 3 {
		log.Fatal("usage: lambdafiles CONFIG FOLDER")
	}
	if err := pack(os.Args[1], os.Args[2], os.LookupEnv); err != nil {
		log.Fatal(err)
	}
}

// pack makes folder anew, with the configuration and its files.
func pack(path, folder string, env func(string) (string, bool)) error {
	files, err := config.Files(path, env)
	if err != nil {
		return err
	}
	var errs []error
	from := map[string]string{"sluice.yaml": path}
	for _, name := range files {
		switch {
		case strings.HasPrefix(filepath.ToSlash(name), "/opt/"): // of a layer
		case !filepath.IsLocal(name):
			errs = append(errs, fmt.Errorf("%s names %s, and a function has only what is in its package: put the file into the folder %s or below it, and name it relative to that", path, name, filepath.Dir(path)))
		case name == "bootstrap" || name == "sluice.yaml":
			errs = append(errs, fmt.Errorf("%s names %s, a name that is taken in the package: give the file another", path, name))
		default:
			from[name] = filepath.Join(filepath.Dir(path), name)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	texts := map[string][]byte{} // read ahead: they may stand in the folder
	for name, source := range from {
		text, err := os.ReadFile(source)
		if err != nil {
			return err
		}
		texts[name] = text
	}
	// What another configuration named must not be packed.
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	for name, text := range texts {
		to := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, text, 0o600); err != nil {
			return err
		}
		// Lambda runs the function as another user, so ignore the umask.
		if err := os.Chmod(to, 0o644); err != nil {
			return err
		}
	}
	return nil
}
