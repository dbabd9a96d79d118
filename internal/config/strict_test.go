package config

import (
	"errors"
	"strings"
	"testing"
)

// Other YAML than mappings of fields is either accepted as written, or refused with its
// place and what to do.
func TestStrictness(t *testing.T) {
	const rest = "source: {tables: [orders]}\nroutes: [{name: x, on: 'a#*', log: {}}]\n"
	env := environ(map[string]string{"A": "dev", "EMPTY": "", "YAML": "a: b\n- [c", "NESTED": "${A}", "BYTES": "caf\xe9", "LIST": "[a, b]"})
	for text, want := range map[string]string{
		"name: \"${A${A}}\"\n" + rest:                   "f:1:7: name: ${A${A} names no variable; want ${NAME} or ${NAME:-default}",
		"name: \"${NO:-${A}}\"\n" + rest:                "f:1:7: name: ${NO:-${A has a variable within its default",
		"name: \"${NO-a}\"\n" + rest:                    "f:1:7: name: ${NO-a} names no variable",
		"name: \"${ A }\"\n" + rest:                     "f:1:7: name: ${ A } names no variable",
		"name: \"${}\"\n" + rest:                        "f:1:7: name: ${} names no variable",
		"name: ${NO:- #}\n" + rest:                      "f:1:7: name: ${ has no }; write $$ for a dollar sign, and put the value in quotes",
		"name: ${NO:-a: b}\n" + rest:                    "f:1:7: no YAML: ",
		"name: ${BYTES}\n" + rest:                       "f:1:7: name: the variable BYTES is no UTF-8",
		"name: \"${NO:-a: b # {[' \\\" $$x}\"\n" + rest: "",
		"name: $A\n" + rest:                             "",
		"# ${NO}\n" + rest:                              "",
		"name: x # ${NO}\n" + rest:                      "",
		"limits: ${YAML}\n" + rest:                      "f:1:9: limits: \"${YAML}\" is not what is wanted here: a mapping",
		"source: {tables: \"${LIST}\"}\n" + rest[27:]:   "f:1:18: source.tables: \"${LIST}\" is no table's name",
		"name: ${NESTED}\n" + rest:                      "",

		"name: a\nname: b\n" + rest:                                    "f:2:1: \"name\" is there twice; it stands in line 1, too",
		"x: &a [1]\ny: [*a, *a]\n" + rest:                              "f:1:4: anchors (&) and aliases (*) are not taken",
		"x: *a\n" + rest:                                               "f:1:4: anchors (&) and aliases (*) are not taken",
		"%YAML 1.2\n---\n" + rest:                                      "f:1:1: directives (%) are not taken: leave the line out",
		"name: %x\n" + rest:                                            "f:1:7: no YAML: ",
		"name: x\n<<: {name: y}\n" + rest:                              "f:2:1: merging (<<) is not taken: write out what is meant",
		"? name\n: x\n" + rest:                                         "f:1:1: names behind a question mark are not taken: write name: value",
		"---\n" + rest + "---\n# the end\n...\n":                       "",
		rest + "---\n---\nname: lost\n":                                "f:5:1: a second document begins here",
		rest + "---\n# nothing\n---\nname: lost\n":                     "f:6:1: a second document begins here",
		rest + "...\nname: lost\n":                                     "f:4:1: a second document begins here",
		"---\n---\n" + rest:                                            "f:1:1: ",
		"name:\tx\n" + rest:                                            "",
		"limits:\n\twindow: 1\n" + rest:                                "f:2:1: a tab in the indentation",
		"\uFEFF" + strings.ReplaceAll(rest, "\n", "\r\n"):              "",
		"name: \uFEFFx\n" + rest:                                       "f:1:7: a byte order mark (the bytes EF BB BF)",
		"\uFEFF\uFEFF" + rest:                                          "f:1:1: a byte order mark (the bytes EF BB BF)",
		"name: a\x00b\n" + rest:                                        "f:1:8: a character that YAML does not take: byte 0x00",
		"# caf\xe9\n" + rest:                                           "f:1:6: a character that YAML does not take: byte 0xe9",
		strings.Repeat("a: b\n", 20_000):                               "f:1:1: the file has some 20000 values, more than the 10000",
		"source: {tables: [" + strings.Repeat("a, ", 64_000) + "a]}\n": "f:1:1: the file has some 64001 values",
		strings.Repeat("# a, b\n\n", 4_000) + rest:                     "",
		strings.Repeat("#", 10<<20):                                    "f:1:1: the file has 10485760 bytes, more than",

		"tables: [orders]\n" + rest:                                "f:1:1: unknown field \"tables\"; it is a field of source or entityType; here want name, source",
		"logLevel: debug\n" + rest:                                 "f:1:1: unknown field \"logLevel\"; it is a field of daemon; here want",
		"window: 5\n" + rest:                                       "f:1:1: unknown field \"window\"; it is a field of limits; here want",
		strings.Replace(rest, "log: {}", "log: {attempts: 2}", 1):  "f:2:37: routes[0].log: unknown field \"attempts\"; it is a field of routes; here want level or message",
		strings.Replace(rest, "log: {}", "limits: {}, log: {}", 1): "f:2:31: routes[0]: unknown field \"limits\"; it is a field of the file itself; here want",
		"key: x\n" + rest:                                          "f:1:1: unknown field \"key\"; want name, source", // too many types have this field
	} {
		_, err := Parse("f", "", []byte(text), env)
		if len(text) > 300 {
			text = text[:100] + "…"
		}
		switch {
		case want == "" && err != nil:
			t.Errorf("%s\n%v", text, err)
		case want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)):
			t.Errorf("%s\ngot  %v\nwant %s", text, err, want)
		}
	}
}

// No error shows a variable's value, for any field and any mistake.
func TestErrorsShowNoVariable(t *testing.T) {
	const file = `name: "${S}"
source: {tables: [one, "${S}", "${S}-two"], queues: ["${S}"], start: "${S}"}
entityType: {tables: {one: "${S}", "${S}": "", "${S}.x": [a], "${S}-two": b, "${S}": 5}}
aws: {region: "${S}", endpoints: {dynamodb: "${S}"}}
sinks:
  jobs: {sqs: {queue: "${S}"}}
  search: {opensearch: {urls: ["${S}"], username: "${S}", password: "", sign: "${S}", caFile: "${S}", indices: [{alias: "${S}", file: "${S}"}, {alias: "${S}", file: "${S}"}]}}
  tables: {dynamodb: {budget: {"${S}": 0, "${S}!": 1}, inFlight: "${S}"}}
routes:
  - {name: "${S}", on: "${S}", when: "new.a == ${S}(", changed: [".${S}"], log: {level: "${S}"}}
  - {name: "${S}", on: "${S}#INSERT", send: {to: "${S}", body: "{${S}", group: "{$${S}}", delay: "${S}"}}
  - {name: p, on: "a#*", project: {index: "${S}A", id: "${S}", version: "${S}", include: ["${S}", "${S}."], rename: {a: "${S}"}, fields: {a: "{${S}"}}}
  - {name: q, on: "a#*", project: {index: i, id: "{a}", version: sequence, include: [a], exclude: ["${S}"], rename: {b: "${S}", c: "${S}"}}}
  - name: c
    on: "${S}#REMOVE"
    cascade: {table: "${S}!", key: "${S}", queue: "${S}", children: [{table: t, key: "${S}", partition: {name: x, from: y}}, {table: t, key: ["${S}", a], partition: {name: "${S}", from: y}, sort: {name: "${S}", from: z}}]}
  - {name: d, on: "d#REMOVE", cascade: {key: a, children: [{table: t, key: k, partition: {name: k, from: y}}]}}
  - {name: n, on: "a#*", count: {id: "${S}#", markers: m, deleteOrphans: "x", numbers: [{table: "${S}", attribute: n, key: ["${S}"], when: "new.${S}("}]}}
deadLetter: {queue: "${S}.fifo", maxAge: "${S}"}
daemon: {listen: "${S}"}
`
	for _, secret := range []string{"s3cret", "s3cret/s3cret", "s3cret s3cret", "{s3cret", "s3cret.", "http://u:s3cret@h:x/%zz", "s3cret\"'\n"} {
		env := environ(map[string]string{"S": secret})
		_, err := Parse("f", t.TempDir(), []byte(file), env)
		if err == nil || strings.Count(err.Error(), "${S}") < 20 {
			t.Errorf("%q: %v", secret, err)
		} else if strings.Contains(err.Error(), "s3cret") {
			for line := range strings.Lines(err.Error()) {
				if strings.Contains(line, "s3cret") {
					t.Errorf("%q: %s", secret, line)
				}
			}
		}
	}
	// One mistake at a time, because one may hide another. Also errors of Build.
	for _, text := range []string{
		"entityType: {tables: {orders: a, lines: b}}\nsource: {tables: [\"${S}\", lines]}\nroutes: [{name: c, on: '*#REMOVE', cascade: {key: a, children: [{table: t, key: k, partition: {name: k, from: y}}]}}]\n",
		"source: {tables: [\"${S}\"]}\nroutes: [{name: c, on: 'a#REMOVE', cascade: {table: s3cre, key: a, children: [{table: t, key: k, partition: {name: k, from: y}}]}}]\n",
		"source: {tables: [orders]}\nroutes: [{name: c, on: 'a#REMOVE', cascade: {key: a, children: [{table: t, key: \"${S}\", partition: {name: k, from: y}}]}}]\n",
		"source: {tables: [orders]}\nroutes: [{name: c, on: 'a#*', count: {id: i, markers: m, deleteOrphans: other, numbers: [{table: \"${S}\", attribute: n, key: a}]}}]\n",
		"source: {tables: [orders]}\nroutes: [{name: c, on: 'a#*', count: {id: i, markers: m, deleteOrphans: ppp, numbers: [{table: ppp, attribute: n, key: {a: \"x.${S}\"}}]}}]\n",
	} {
		c, err := Parse("f", "", []byte(text), environ(map[string]string{"S": "s3cret"}))
		if err == nil {
			_, err = c.Build(t.Context(), newWorld().setup())
		}
		if err == nil || strings.Contains(err.Error(), "s3cret") || !strings.HasPrefix(err.Error(), "f:") {
			t.Errorf("%s%v", text, err)
		}
	}
}

// The error of an outage stays, with ${NAME} for a variable's value.
func TestErrorsOfServicesAreShown(t *testing.T) {
	const file = `source: {tables: ["${TABLE}"]}
sinks: {search: {opensearch: {urls: ["${URL}"], username: u, password: "${PASSWORD}"}}}
routes: [{name: l, on: "a#INSERT", log: {}}]
`
	c, err := Parse("f", "", []byte(file), environ(map[string]string{"TABLE": "orders", "URL": "https://h:9200", "PASSWORD": "s3 cret"}))
	if err != nil {
		t.Fatal(err)
	}
	err = c.wrong("sinks.search", errors.New(`GET "https://h:9200/orders-2": h said 503 to "s3%20cret", s3+cret: not up`))
	if got, want := err.Error(), `f:2:9: sinks.search: GET "${URL}/${TABLE}-2": h said 503 to "${PASSWORD}", ${PASSWORD}: not up`; got != want {
		t.Errorf("\n%s want\n%s", got, want)
	}
}
