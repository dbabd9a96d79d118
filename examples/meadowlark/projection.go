package meadowlark

import (
	"bytes"
	"errors"
	"slices"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/examples/meadowlark/writer"
	"github.com/sluicehq/sluice/handlers/projection"
	"github.com/sluicehq/sluice/item"
)

// Projection describes the copies of documents: the id and then the document's own
// fields. After them come who may see it, and the document again as a string that
// is returned unchanged. Indices are named by type, after prefix.
func Projection(prefix string) projection.Options {
	return projection.Options{
		Index:   template(prefix) + "{pk|lower|replace:#:$|replace:.:-}",
		ID:      "{sk|trim:ID#}",
		Version: projection.ByAttribute("rev"),
		Include: []string{"info"},
		Exclude: []string{"info." + unvalidated},
		Flatten: []projection.Flatten{{Path: "info"}},
		First:   []projection.Field{projection.Text("id", "{sk|trim:ID#}")},
		Last: []projection.Field{
			projection.Computed("info", info),
			projection.Copy("createdBy", "ownerId"),
			projection.Copy("extractedEdOrgId", "edOrgId"),
			projection.Copy("extractedStudentId", "studentId"),
			projection.Copy("securityEdOrgId", "securityEdOrgId"),
			projection.Copy("securityStudentId", "securityStudentId"),
		},
	}
}

// unvalidated is the API's own mark on a document.
const unvalidated = "_unvalidated"

// info is the document with its id, keys sorted, as a JSON string. The id cannot
// be the document's own; all else is as it was written, fields with reserved
// names, too.
func info(dst []byte, it sluice.Item) ([]byte, error) {
	v, ok := it.Lookup("info")
	if !ok || v.Kind() != item.M {
		return dst, errors.New("the item has no map in \"info\": there is no document")
	}
	type field struct {
		name  []byte
		json  []byte // the name, as JSON
		value item.Value
	}
	fields := []field{{name: []byte("id"), json: []byte(`"id"`)}}
	for name, v := range v.Map().Fields() {
		if text := name.Text(); string(text) != "id" && string(text) != unvalidated {
			fields = append(fields, field{text, name, v})
		}
	}
	slices.SortFunc(fields, func(a, b field) int { return bytes.Compare(a.name, b.name) })
	document := []byte{'{'}
	for i, f := range fields {
		if i > 0 {
			document = append(document, ',')
		}
		document = append(append(document, f.json...), ':')
		if f.value.Kind() == item.Invalid {
			document = item.AppendString(document, writer.EntityID(it))
		} else {
			document = f.value.AppendJSON(document, sorted)
		}
	}
	return item.AppendString(dst, append(document, '}')), nil
}

// sorted writes equal values as equal texts.
var sorted = item.JSON{SortedKeys: true, SortedSets: true}

// template writes text so that a template has it as it is.
func template(text string) string {
	var out []byte
	for _, b := range []byte(text) {
		if b == '\\' || b == '{' || b == '}' {
			out = append(out, '\\')
		}
		out = append(out, b)
	}
	return string(out)
}
