package meadowlark

import (
	_ "embed"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/examples/internal/kit"
	"github.com/sluicehq/sluice/examples/meadowlark/writer"
)

//go:embed fixtures/items.ndjson
var fixtures []byte

// Fixtures returns the items of two descriptors, a school, and a course that
// refers to it.
func Fixtures() []sluice.Item { return kit.Items(fixtures) }

// Types of the fixtures.
const (
	School                = "TYPE#Ed-Fi#3.3.1-b#School"
	EducationOrganization = "TYPE#Ed-Fi#3.3.1-b#EducationOrganization"
	Course                = "TYPE#Ed-Fi#3.3.1-b#Course"
)

// Resources are the types of the fixtures, and another kind of organization.
func Resources() writer.Resources {
	return writer.Resources{
		School: {Referenced: true, Supertype: EducationOrganization},
		"TYPE#Ed-Fi#3.3.1-b#LocalEducationAgency": {Referenced: true, Supertype: EducationOrganization},
	}
}

// Documents are the documents of the fixtures, in an order in which a Writer
// takes them: it makes those items of them.
func Documents() []writer.Document {
	var documents []writer.Document
	for _, it := range Fixtures() {
		if writer.Kind(it) != writer.Entity {
			continue
		}
		d := writer.Read(it)
		switch d.Type {
		case School:
			d.Identity = "NK#educationOrganizationId=122"
			d.References = []writer.Reference{
				{Type: "TYPE#Ed-Fi#3.3.1-b#SchoolCategoryDescriptor", NaturalKey: "NK#uri://ed-fi.org/SchoolCategoryDescriptor#All Levels"},
				{Type: "TYPE#Ed-Fi#3.3.1-b#EducationOrganizationCategoryDescriptor", NaturalKey: "NK#uri://ed-fi.org/EducationOrganizationCategoryDescriptor#Other"},
			}
		case Course:
			d.References = []writer.Reference{{Type: EducationOrganization, NaturalKey: "NK#educationOrganizationId=122"}}
		}
		documents = append(documents, d)
	}
	return documents
}
