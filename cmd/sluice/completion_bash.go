package main

import (
	"bytes"
	_ "embed"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// bashWords stands in for two functions of the package bash-completion where it
// is not loaded: cobra's script calls them, and a bash without them completes
// nothing.
//
//go:embed completion.bash
var bashWords string

// bashCompletion prints the script for bash.
func bashCompletion(root *cobra.Command, w io.Writer, descriptions bool) error {
	var b bytes.Buffer
	if err := root.GenBashCompletionV2(&b, descriptions); err != nil {
		return err
	}
	script := strings.NewReplacer("_get_comp_words_by_ref", "__sluice_words", "_filedir", "__sluice_files").Replace(b.String())
	_, err := io.WriteString(w, script+bashWords)
	return err
}

// withOwnBash has the command completion bash print a script that needs nothing else.
func withOwnBash(completion *cobra.Command) {
	for _, shell := range completion.Commands() {
		if shell.Name() != "bash" {
			continue
		}
		shell.Long = "Print the script that has bash complete commands of sluice. It needs bash 4 or newer,\nand not the package bash-completion."
		shell.RunE = func(cmd *cobra.Command, _ []string) error {
			bare, err := cmd.Flags().GetBool("no-descriptions")
			if err != nil {
				return err
			}
			return bashCompletion(cmd.Root(), cmd.OutOrStdout(), !bare)
		}
	}
}
