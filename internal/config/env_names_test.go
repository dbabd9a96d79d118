package config

import (
	"strings"
	"testing"
)

// A variable can be in the name of a table, also where the name is a key of a mapping.
func TestVariablesInNames(t *testing.T) {
	const file = `source: {tables: ["${STAGE}-orders"], start: LATEST}
entityType: {tables: {"${STAGE}-orders": order}}
routes: [{name: a, on: order#INSERT, log: {}}]
`
	env := func(name string) (string, bool) { return "dev", name == "STAGE" }
	c, err := Parse("f", ".", []byte(file), env)
	if err != nil || c.EntityType.Tables["dev-orders"] != "order" {
		t.Errorf("%+v, %v", c, err)
	}
	_, err = Parse("f", ".", []byte(strings.Replace(file, "routes", `"${STAGE}"`, 1)), env)
	if err == nil || !strings.Contains(err.Error(), "${STAGE}") {
		t.Errorf("a field's name was replaced: %v", err)
	}
	_, err = Parse("f", ".", []byte(strings.Replace(file, `{"${STAGE}`, `{"${NO}`, 1)), env)
	if err == nil || !strings.Contains(err.Error(), "f:2:") || !strings.Contains(err.Error(), "the variable NO is not set") {
		t.Error(err)
	}
	_, err = Parse("f", ".", []byte(strings.Replace(file, `"${STAGE}-orders": order`, `"${STAGE}-orders": order, dev-orders: x`, 1)), env)
	if err == nil || !strings.Contains(err.Error(), "is there twice") {
		t.Error(err)
	}
}
