// Package doctest tests the module's documents: their Go compiles, Sluice accepts
// their configurations and commands, sessions print what they show, metrics exist,
// links resolve, and pages answer the questions of testdata/questions.txt. The
// README's commands install the module. It has no code.
//
// The kind of a fenced block decides its test:
//
//	go       a whole program is built. Anything else is a fragment: statements or
//	         declarations, which are type-checked. Packages are imported by
//	         their names; other names that a fragment takes for granted are
//	         declared in testdata/prelude.go, or for one page alone in
//	         testdata/<page, with - for />.go. An … stands for what is left out.
//	yaml     a configuration of Sluice (it begins with name, source, routes or
//	         sinks) is taken by config.Parse, other YAML parses.
//	json     parses; one value or several.
//	hcl      parses.
//	expr     lines that are each an expression of a route's when.
//	promql   has closed brackets and quotes.
//	sh       commands that exist: of sluice with their flags, targets of make,
//	         packages of go run and go build.
//	console  a session, which is run: lines that begin with "$ " are commands, the
//	         others what they print; a line "..." stands for any lines. A block
//	         before it on the page that follows <!-- file: NAME --> is a file in
//	         the session's folder.
//	text, mermaid, html  are not looked at.
package doctest
