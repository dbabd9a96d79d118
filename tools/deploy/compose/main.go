// Command compose loads a compose file like Docker, with its included files, and
// reports mistakes.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/compose-spec/compose-go/v2/cli"
)

func main() {
	if err := load(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "compose:", err)
		os.Exit(1)
	}
}

func load(files []string) error {
	options, err := cli.NewProjectOptions(files)
	if err != nil {
		return err
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		return err
	}
	out, err := project.MarshalYAML()
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(out)
	return err
}
