package config

// Load reads a file, puts in what it takes of the environment, and checks all
// that can be checked without a call to anybody. Its error is an [Errors].
//
// ${NAME} is replaced by a variable, ${NAME:-default} by the default when that
// is empty or not set; one that is not set and has no default is an error. $$ is
// a dollar sign.
func Load(path string, env func(string) (string, bool)) (*Config, error) { panic("not yet") }

// Parse is Load for text; name stands in errors for the file's, and files that
// it names are relative to dir.
func Parse(name, dir string, text []byte, env func(string) (string, bool)) (*Config, error) {
	panic("not yet")
}

// Error is one mistake in a file.
type Error struct {
	File         string
	Line, Column int    // from 1
	Field        string // path, such as routes[0].send.to
	Problem      string // what is wrong, what is allowed, and the nearest valid name
}

// Error is "file:line:column: field: problem".
func (e *Error) Error() string { panic("not yet") }

// Errors are all mistakes of a file, in its order.
type Errors []*Error

func (e Errors) Error() string { panic("not yet") }

// Schema is the JSON Schema of a file, as it is shipped in deploy/schema.
func Schema() []byte { panic("not yet") }
