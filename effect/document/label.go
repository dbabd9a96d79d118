package document

import (
	"cmp"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// IndexLabel names the index in metrics and logs: the template, else the name.
func (o Op) IndexLabel() string { return cmp.Or(o.IndexTemplate, o.Index) }

// Relabel returns err with IndexTemplate, if set, instead of Index in its text.
func (o Op) Relabel(err error) error {
	if err == nil || o.IndexTemplate == "" {
		return err
	}
	return &relabelled{err, relabel(relabel(err.Error(), url.PathEscape(o.Index), o.IndexTemplate), o.Index, o.IndexTemplate)}
}

type relabelled struct {
	err  error
	text string
}

func (r *relabelled) Error() string { return r.text }
func (r *relabelled) Unwrap() error { return r.err }

// relabel replaces name in text where it is a whole word.
func relabel(text, name, label string) string {
	if name == "" || name == label {
		return text
	}
	var b strings.Builder
	rest := text
	for {
		i := strings.Index(rest, name)
		if i < 0 {
			b.WriteString(rest)
			return b.String()
		}
		before, _ := utf8.DecodeLastRuneInString(rest[:i])
		after, _ := utf8.DecodeRuneInString(rest[i+len(name):])
		b.WriteString(rest[:i])
		if inWord(before) || inWord(after) {
			b.WriteString(name)
		} else {
			b.WriteString(label)
		}
		rest = rest[i+len(name):]
	}
}

func inWord(r rune) bool { return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r)) }
