package config

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// schemaFile is the text of the schema.
func schemaFile(t testing.TB) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "deploy", "schema", "sluice.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// compiled is the schema.
func compiled(t testing.TB) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schemaFile(t)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource("sluice.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("sluice.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// validator returns a function that checks a file by the schema.
func validator(t testing.TB) func(text []byte) error {
	t.Helper()
	s := compiled(t)
	return func(text []byte) error {
		data, err := yaml.YAMLToJSON(text)
		if err != nil {
			return err
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
		if err != nil {
			return err
		}
		return s.Validate(v)
	}
}

// For mistakes within its reach, the schema agrees with Parse.
func TestSchemaSaysAsParse(t *testing.T) {
	check := validator(t)
	env := environ(map[string]string{"N": "4", "PW": "x"})
	for _, text := range []string{
		whole,
		minimal("- {name: x, on: 'a#*', log: {level: debug}}\n"),
		minimal("- {name: x, on: ['a#*'], log: {}, attempts: \"${N}\", timeout: \"${T:-5s}\", redrive: \"${R:-true}\", ttl: \"${TTL:-only}\"}\n"),
		"source: {queues: q}\nentityType: kind\nroutes: [{name: x, on: 'a#*', log: {}}]\n",
		"source: {queues: q}\nentityType: {tables: {orders: order}}\nroutes: [{name: x, on: 'a#*', log: {}}]\n",
	} {
		if _, err := Parse("f", "", []byte(text), env); err != nil {
			t.Errorf("%v\n%s", err, text)
		}
		if err := check([]byte(text)); err != nil {
			t.Errorf("%v\n%s", err, text)
		}
	}
	for _, text := range []string{
		"name: x\n",
		"source: {}\nroutes: [{name: x, on: 'a#*', log: {}}]\n",
		"source: {tables: []}\nroutes: [{name: x, on: 'a#*', log: {}}]\n",
		"source: {tables: [orders]}\nroutes: []\n",
		"source: {tables: [orders]}\nzzz: 1\nroutes: [{name: x, on: 'a#*', log: {}}]\n",
		"source: {tables: [orders], start: NOW}\nroutes: [{name: x, on: 'a#*', log: {}}]\n",
		"source: {tables: [orders], backfillUnits: 0}\nroutes: [{name: x, on: 'a#*', log: {}}]\n",
		"source: {tables: [orders, orders]}\nroutes: [{name: x, on: 'a#*', log: {}}]\n",
		"source: {tables: [orders]}\nentityType: {attribute: a, tables: {b: c}}\nroutes: [{name: x, on: 'a#*', log: {}}]\n",
		"source: {tables: [orders]}\nentityType: []\nroutes: [{name: x, on: 'a#*', log: {}}]\n",
		"source: {tables: [orders]}\nsinks: {a: {}}\nroutes: [{name: x, on: 'a#*', log: {}}]\n",
		"source: {tables: [orders]}\nsinks: {a: {sqs: {queue: q}, dynamodb: {}}}\nroutes: [{name: x, on: 'a#*', log: {}}]\n",
		"source: {tables: [orders]}\nsinks: {a: {sqs: {}}}\nroutes: [{name: x, on: 'a#*', log: {}}]\n",
		minimal("- {name: x, on: 'a#*'}\n"),
		minimal("- {name: x, on: 'a#*', log: {}, send: {to: jobs}}\n"),
		minimal("- {name: x, on: 'a#*', log:}\n"),
		minimal("- {name: 5, on: 'a#*', log: {}}\n"),
		minimal("- {name: '', on: 'a#*', log: {}}\n"),
		minimal("- {on: 'a#*', log: {}}\n"),
		minimal("- {name: x, on: [], log: {}}\n"),
		minimal("- {name: x, on: 'a#*', log: {level: loud}}\n"),
		minimal("- {name: x, on: 'a#*', attempts: 0, log: {}}\n"),
		minimal("- {name: x, on: 'a#*', attempts: '3', log: {}}\n"),
		minimal("- {name: x, on: 'a#*', timeout: 30, log: {}}\n"),
		minimal("- {name: x, on: 'a#*', timeout: 30 seconds, log: {}}\n"),
		minimal("- {name: x, on: 'a#*', redrive: yes, log: {}}\n"),
		minimal("- {name: x, on: 'a#*', project: {index: i, id: '{a}'}}\n"),
		minimal("- {name: x, on: 'a#*', project: {index: i, id: '{a}', version: none, fields: {a: [1]}}}\n"),
		minimal("- {name: x, on: 'a#REMOVE', cascade: {key: a, children: []}}\n"),
		minimal("- {name: x, on: 'a#REMOVE', cascade: {key: [a, b, c], children: [{table: t, key: k, partition: {name: k, from: a}}]}}\n"),
		minimal("- {name: x, on: 'a#*', ttl: '', log: {}}\n"),
		minimal("- {name: x, on: 'a#*', timeout: 0s, log: {}}\n"),
		minimal("- {name: x, on: 'a#*', project: {index: i, id: '{a}', version: 'attribute:'}}\n"),
		minimal("- {name: x, on: 'a#*', project: {index: i, id: '{a}', version: 'attribute:a,'}}\n"),
		minimal("- {name: x, on: 'a#*', project: {index: i, id: '{a}', version: 'hours:a'}}\n"),
		minimal("- {name: x, on: 'a#*', count: {id: i, markers: m, numbers: [{table: t, attribute: n, key: {}}]}}\n"),
		minimal("- {name: x, on: 'a#*', count: {id: i, markers: m, numbers: [{table: t, attribute: n, key: {a: a, b: b, c: c}}]}}\n"),
		"source: {tables: [orders]}\nentityType: {attribute: ''}\nroutes: [{name: x, on: 'a#*', log: {}}]\n",
		"source: {tables: [orders]}\nentityType: {tables: {orders: ''}}\nroutes: [{name: x, on: 'a#*', log: {}}]\n",
		"source: {tables: [orders]}\naws: {endpoints: {s3: 'http://h'}}\nroutes: [{name: x, on: 'a#*', log: {}}]\n",
		"source: {tables: [orders]}\nsinks: {'': {sqs: {queue: q}}}\nroutes: [{name: x, on: 'a#*', log: {}}]\n",
	} {
		if _, err := Parse("f", "", []byte(text), env); err == nil {
			t.Errorf("Parse takes\n%s", text)
		}
		if err := check([]byte(text)); err == nil {
			t.Errorf("the schema takes\n%s", text)
		}
	}
}

// Shipped files are valid. The test ignores variables: the user of a file sets them.
func TestShippedFiles(t *testing.T) {
	check := validator(t)
	for _, root := range []string{"examples", "deploy", "docs", "cmd", "bench"} {
		err := filepath.WalkDir(filepath.Join("..", "..", root), func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || filepath.Ext(path) != ".yaml" {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if !strings.Contains(string(text), "sluice.schema.json") {
				return nil // another kind of YAML file
			}
			if err := check(text); err != nil {
				t.Errorf("%s: %v", path, err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}
