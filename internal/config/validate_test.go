package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each check of validate, alone.
func TestValidateSeesEachMistake(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"ca.pem": "no certificate", "bad.json": `["settings"]`, "good.json": `{}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := func(top, route string) string {
		if !strings.Contains(top, "source:") {
			top += "source: {tables: [orders]}\n"
		}
		return top + "routes: [{name: x, " + route + "}]\n"
	}
	const logs = "on: 'a#*', log: {}"
	cluster := func(more string) string {
		return file("sinks: {s: {opensearch: {urls: 'http://h', "+more+"}}}\n", logs)
	}
	child := func(more string) string {
		return file("", "on: 'a#REMOVE', cascade: {key: a, children: [{table: ttt, key: [p, s], "+more+"}]}")
	}
	count := func(number, more string) string {
		return file("", "on: 'a#*', count: {id: c, markers: mmm, numbers: [{table: ppp, attribute: n, key: [a]"+number+"}]}"+more)
	}
	for text, want := range map[string]string{
		file("name: "+strings.Repeat("x", 200)+"\n", logs):                           "",
		file("name: "+strings.Repeat("x", 201)+"\n", logs):                           "f:1:7: name: ",
		file("sinks: {a: {dynamodb: {}}, b: {dynamodb: {}}}\n", logs):                "f:1:1: sinks: a, b are all of dynamodb",
		file("deadLetter: {queue: dead.fifo}\n", logs):                               "f:1:21: deadLetter.queue: it is a FIFO queue",
		file("deadLetter: {queue: 'https://sqs.eu-west-1.amazonaws.com/'}\n", logs):  "f:1:21: deadLetter.queue: ",
		file("source: {queues: [q], backfill: true}\n", "on: 'a#SNAPSHOT', log: {}"): "f:1:33: source.backfill: no table is named",
		file("entityType: {tables: {orders: ''}}\n", logs):                           "f:1:31: entityType.tables.orders: the type is empty",
		file("sinks: {d: {dynamodb: {budget: {'a b': 1}}}}\n", logs):                 "f:1:40: sinks.d.dynamodb.budget[\"a b\"]: \"a b\" is no table's name",
		file("", "on: 'a#INSERT', ttl: only, log: {}"):                               "f:2:41: routes[0].ttl: only deletions are by TTL",
		file("", "on: 'a#*', ttl: only, log: {}"):                                    "",
		file("", logs+", backoff: {first: 2s, max: 1s}"):                             "f:2:66: routes[0].backoff.max: \"1s\" is less than first",
		file("", logs+", backoff: {first: 1s, max: 1s}"):                             "",
		cluster("sign: es"):                                                             "f:1:32: sinks.s.opensearch.urls: it is plain http to another host",
		cluster("username: u, password: p"):                                             "f:1:32: sinks.s.opensearch.urls: it is plain http to another host",
		cluster("sign: es, allowPlainHTTP: other"):                                      "f:1:32: sinks.s.opensearch.urls: it is plain http to another host",
		cluster("sign: es, allowPlainHTTP: [other, h]"):                                 "",
		cluster("allowPlainHTTP: h, sign: es, username: u, password: p"):                "f:1:69: sinks.s.opensearch.sign: requests are signed",
		file("sinks: {s: {opensearch: {urls: ['https://a', 'http://u:p@h']}}}\n", logs): "f:1:46: sinks.s.opensearch.urls[1]: it is plain http to another host",
		file("aws: {endpoints: {dynamodb: 'http://dynamodb:8000', sqs: 'http://SQS.eu-west-1.amazonaws.com'}}\n", logs): "f:1:58: aws.endpoints.sqs: it is plain http to AWS",
		cluster("caFile: ca.pem"): "f:1:52: sinks.s.opensearch.caFile: \"ca.pem\" has no certificate in PEM",
		cluster("indices: [{alias: a, file: good.json}, {alias: a, file: good.json}]"): "f:1:91: sinks.s.opensearch.indices[1].alias: \"a\" is there twice",
		cluster("indices: [{alias: a, file: bad.json}]"):                               "f:1:71: sinks.s.opensearch.indices[0].file: \"bad.json\" is no JSON object",
		child("partition: {name: p, from: a}, sort: {name: s, from: a, after: '#'}"):   "",
		child("partition: {name: p, from: a}, sort: {name: s, from: a}"):               "f:2:122: routes[0].cascade.children[0].sort.after: it is empty: the prefix",
		child("partition: {name: p, from: a}, sort: {name: s}"):                        "f:2:122: routes[0].cascade.children[0].sort: it has no value",
		child("partition: {name: p, before: x}"):                                       "f:2:91: routes[0].cascade.children[0].partition.from: it is missing",
		child("partition: {name: p}, sort: {name: s, from: a, after: '#'}"):            "f:2:91: routes[0].cascade.children[0].partition: it has no value",
		count("", ""):               "",
		count(", index: i", ""):     "f:2:70: routes[0].count.numbers[0]: index and partition go together",
		count(", partition: i", ""): "f:2:70: routes[0].count.numbers[0]: index and partition go together",
		count("", "}, {name: y, on: 'b#*', count: {id: c, markers: mmm, numbers: [{table: ppp, attribute: m, key: a}]}"):                               "f:2:144: routes[1].count.id: \"c\" is that of routes[0].count, too",
		count("", "}, {name: y, on: 'b#*', count: {id: c, markers: nnn, numbers: [{table: ppp, attribute: m, key: a}]}"):                               "",
		file("sinks: {s: {opensearch: {urls: 'http://h'}}}\n", "on: 'a#*', project: {index: i, id: '{a}', version: sequence, unfencedBackfill: true}"): "f:3:99: routes[0].project.unfencedBackfill: it is for version none",
		strings.Replace(bases[4], ", type: x", "", 1):                                    "f:4:267: routes[0].escalate.ladder.step: typeAttribute and type go together",
		"a: " + strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1) + "\n": "f:1:36: lists and mappings stand in each other more than 32 deep",
		"a: " + strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth) + "\n":     "f:1:1: unknown field \"a\"",
	} {
		_, err := Parse("f", dir, []byte(text), nil)
		switch {
		case want == "" && err != nil:
			t.Errorf("%s%v", text, err)
		case want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)):
			t.Errorf("%sgot  %v\nwant %s", text, err, want)
		}
	}
}
