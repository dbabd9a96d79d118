package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rivo/uniseg"
	"golang.org/x/term"
)

// leastColumn is the width to which a column may be cut.
const leastColumn = 12

// table is text in columns under heads. On a terminal, columns without room are cut. In
// a pipe or a file nothing is.
type table struct {
	heads []string
	whole []string // heads of columns that are never cut
	rows  [][]string
}

// row adds a row; each cell becomes one line.
func (t *table) row(cells ...any) {
	row := make([]string, len(cells))
	for i, cell := range cells {
		row[i] = singleLine(fmt.Sprint(cell))
	}
	t.rows = append(t.rows, row)
}

// print prints the table, and says on stderr which columns it has cut. more says
// what shows them whole.
func (t *table) print(stdout, stderr io.Writer, more string) error {
	text, names := t.fit(widthOf(stdout))
	_, err := io.WriteString(stdout, text)
	if len(names) > 0 {
		fmt.Fprintf(stderr, "cut to fit: %s; %s\n", strings.Join(names, ", "), more)
	}
	return err
}

// fit returns the table in so many columns, and the heads of those that it has cut. 0
// cuts nothing.
func (t *table) fit(room int) (text string, names []string) {
	widths := t.widths(room)
	cut := make([]bool, len(widths))
	var b strings.Builder
	for _, row := range append([][]string{t.heads}, t.rows...) {
		for i, cell := range row {
			text := cutColumns(cell, widths[i])
			cut[i] = cut[i] || text != cell
			b.WriteString(text)
			if i < len(row)-1 { // else it would end in spaces
				b.WriteString(strings.Repeat(" ", widths[i]-uniseg.StringWidth(text)+2))
			}
		}
		b.WriteByte('\n')
	}
	for i, head := range t.heads {
		if cut[i] {
			names = append(names, strings.TrimSpace(head))
		}
	}
	return b.String(), names
}

// widthOf returns the width of a terminal; 0 if out is none.
func widthOf(out io.Writer) int {
	if file, ok := out.(interface{ Fd() uintptr }); ok {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return 0
}

// widths are the widths of the columns: those of their content. If that exceeds
// the room, the widest are made narrower. 0 is room for all.
func (t *table) widths(room int) []int {
	widths := make([]int, len(t.heads))
	for _, row := range append([][]string{t.heads}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], uniseg.StringWidth(cell))
		}
	}
	over := 2*(len(widths)-1) - room
	for _, w := range widths {
		over += w
	}
	for ; room > 0 && over > 0; over-- {
		widest := -1
		for i, w := range widths {
			if w > leastColumn && !slices.Contains(t.whole, t.heads[i]) && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	return widths
}

// singleLine is a text on one line, which cannot move the cursor of a terminal.
func singleLine(text string) string { return plain(lineEnds.Replace(text)) }

var lineEnds = strings.NewReplacer("\r\n", " ", "\n", " ", "\t", " ")

// cutText makes a text one line of so many columns.
func cutText(text string, columns int) string { return cutColumns(singleLine(text), columns) }

// cutColumns shortens a text to columns, and marks that with its last character.
func cutColumns(text string, columns int) string {
	if uniseg.StringWidth(text) <= columns {
		return text
	}
	return fitting(text, columns-1) + "…"
}

// fitting is as much of text as has room in the columns of a terminal, on which a
// letter has none, one or two.
func fitting(text string, columns int) string {
	used, rest, state := 0, text, -1
	for rest != "" {
		_, after, width, next := uniseg.FirstGraphemeClusterInString(rest, state)
		if used += width; used > columns {
			break
		}
		rest, state = after, next
	}
	return text[:len(text)-len(rest)]
}
