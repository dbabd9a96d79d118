package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func environ(set map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := set[name]; return v, ok }
}

const whole = `
name: searches
source: {tables: [manhunt], start: LATEST}
entityType:
  - {key: {attribute: PK, pattern: "{type}#**"}}
  - kind
aws: {region: eu-central-1, endpoints: {sqs: "http://127.0.0.1:9324"}}
sinks:
  calls: {sqs: {queue: calls, inFlight: 8, timeout: 20s}}
  fifo: {sqs: {queue: calls.fifo}}
  search: {opensearch: {urls: http://127.0.0.1:9200, username: u, password: "${PW}"}}
  tables: {dynamodb: {budget: {points: 20.5}}}
routes:
  - name: new search
    on: search#INSERT
    when: new.status == "active"
    attempts: ${N}
    timeout: ${T:-5s}
    rate: {perSecond: 2.5, burst: 3}
    backoff: {first: 1s, max: 10s}
    redrive: true
    send: {to: calls, delay: 1m}
  - name: document
    on: ["search#*", "search#SNAPSHOT"]
    project:
      index: searches-{region|lower}
      id: '{PK}|{SK}'
      version: sequence
      rename: {z: a, b: c}
      fields: {kind: search, n: 3, f: 2.5, yes: true, none: null}
  - name: cascade
    on: search#REMOVE
    cascade:
      key: PK
      children: [{table: points, key: [a, b], partition: {name: a, from: PK}}]
      queue: calls
      threshold: 0
  - name: counts
    on: search#*
    count:
      id: counts
      markers: markers
      numbers:
        - {table: maps, attribute: n, key: [mapId], when: new.live}
        - {table: maps, attribute: m, key: {id: mapId}}
  - {name: log, on: "*#*", log: {}}
deadLetter: {queue: dead, maxAge: 10h}
limits: {concurrency: 8}
daemon: {grace: 10s, pprof: true}
`

func TestParse(t *testing.T) {
	c, err := Parse("sluice.yaml", "", []byte(whole), environ(map[string]string{"PW": "a: 'b\n#{", "N": "4"}))
	if err != nil {
		t.Fatal(err)
	}
	yes, zero := true, 0
	for _, tt := range []struct{ got, want any }{
		{c.Source.Tables, Strings{"manhunt"}},
		{c.EntityType.First, []EntityType{{Key: &KeyPattern{"PK", "{type}#**"}}, {Attribute: "kind"}}},
		{c.Sinks["search"].OpenSearch.Password, "a: 'b\n#{"},
		{c.Sinks["search"].OpenSearch.URLs, Strings{"http://127.0.0.1:9200"}},
		{*c.Sinks["calls"].SQS, SQS{Queue: "calls", InFlight: 8, Timeout: Duration(20 * time.Second)}},
		{c.Sinks["tables"].DynamoDB.Budget, map[string]float64{"points": 20.5}},
		{c.Routes[0].On, Strings{"search#INSERT"}},
		{c.Routes[0].Attempts, 4},
		{c.Routes[0].Timeout, Duration(5 * time.Second)},
		{c.Routes[0].Rate, &Rate{2.5, 3}},
		{c.Routes[0].Redrive, &yes},
		{c.Routes[1].Project.Rename, Texts{{"z", "a"}, {"b", "c"}}},
		{c.Routes[1].Project.Fields, Fields{{"kind", "search"}, {"n", int64(3)}, {"f", 2.5}, {"yes", true}, {"none", nil}}},
		{c.Routes[2].Cascade.Threshold, &zero},
		{c.Routes[3].Count.Numbers[0].Key, KeyFrom{"mapId": "mapId"}},
		{c.Routes[3].Count.Numbers[1].Key, KeyFrom{"id": "mapId"}},
		{c.Routes[4].Log, &Log{}},
		{c.Daemon.Pprof, true},
	} {
		if !reflect.DeepEqual(tt.got, tt.want) {
			t.Errorf("%#v, want %#v", tt.got, tt.want)
		}
	}
	if got := c.fault("routes[1].project.id", "x").Error(); got != "sluice.yaml:27:11: routes[1].project.id: x" {
		t.Error(got)
	}
}

// minimal is a valid file around a test's fields.
func minimal(routes string) string {
	return "source: {tables: [orders]}\nsinks: {jobs: {sqs: {queue: jobs}}, f: {sqs: {queue: f.fifo}}, search: {opensearch: {urls: [\"http://h\"]}}}\nroutes:\n" + routes
}

func TestParseErrors(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		env  map[string]string
		want []string // all lines of the error
	}{
		"unknown fields": {"sorce: {tables: [orders]}\nsource: {tables: [orders]}\nroutes:\n- {naem: x, on: 'a#*', log: {}}\n", nil, []string{
			`f.yaml:1:1: unknown field "sorce"; did you mean source?`,
			`f.yaml:4:4: routes[0]: unknown field "naem"; did you mean name?`,
		}},
		"nested unknown": {"source: {tables: [orders]}\nsinks:\n  a: {sqs: {qeue: x}}\nroutes: [{name: x, on: 'a#*', zzzzzzzz: 1}]\n", nil, []string{
			`f.yaml:3:13: sinks.a.sqs: unknown field "qeue"; did you mean queue?`,
			`f.yaml:4:31: routes[0]: unknown field "zzzzzzzz"; want name, on, when, changed, changedIgnoring, ttl, regions, attempts, poisonAfter, backoff, timeout, concurrency, rate, maxAge, redrive, send, project, cascade, count, escalate or log`,
		}},
		"types": {minimal("- name: 5\n  on: {}\n  attempts: many\n  timeout: 30\n  rate: 2\n  redrive: yes\n  log:\n"), nil, []string{
			`f.yaml:4:9: routes[0].name: "5" is not what is wanted here: text, in quotes: "5"`,
			`f.yaml:5:7: routes[0].on: it is a mapping; want text, or a list of texts`,
			`f.yaml:6:13: routes[0].attempts: "many" is not what is wanted here: a whole number of 1 or more`,
			`f.yaml:7:12: routes[0].timeout: "30" is not what is wanted here: a duration such as 30s, 5m or 1h30m, at least 1ms`,
			`f.yaml:8:9: routes[0].rate: "2" is not what is wanted here: a mapping with perSecond or burst`,
			`f.yaml:9:12: routes[0].redrive: "yes" is not what is wanted here: true or false`,
			`f.yaml:10:3: routes[0].log: it has no value; want a mapping; {} is one with its defaults, or leave it out`,
		}},
		"missing": {"name: x\n", nil, []string{`f.yaml:1:1: source: it is missing`, `f.yaml:1:1: routes: it is missing`}},
		"nothing is read": {"source: {}\nroutes:\n- {name: x, on: 'a#*', log: {}}\n", nil, []string{
			`f.yaml:1:1: source: no table or queue is named, so that nothing would be read; name one: tables: [orders]`}},
		"handlers": {minimal("- {name: x, on: 'a#*'}\n- {name: x, on: 'a#*', log: {}, send: {to: jobs}}\n"), nil, []string{
			`f.yaml:4:3: routes[0]: it has no handler; want one of send, project, cascade, count, escalate and log`,
			`f.yaml:5:3: routes[1]: send and log are both its handler; want one, and a route for each`,
			`f.yaml:5:10: routes[1].name: "x" is the name of routes[0], too (line 4)`,
		}},
		"a projection's condition": {"source: {tables: [orders]}\nsinks: {s: {opensearch: {urls: ['http://h']}}}\nroutes:\n- {name: x, on: 'a#*', when: new.open, project: {index: i, id: '{pk}', version: sequence}}\n- {name: y, on: 'a#*', when: 'event == \"INSERT\" && keys.pk != \"\"', project: {index: i, id: '{pk}', version: sequence, only: new.opn > }}\n", nil, []string{
			`f.yaml:4:30: routes[0].when: it reads the item, and a document of an item that no longer fulfils it would stay as it was; want project.only, which says which items have documents`,
			`f.yaml:5:133: routes[1].project.only: it ends where more is expected`,
		}},
		"patterns": {minimal("- {name: x, on: [search, 'a#INSRT', 'a#*', 'b#*', 'a#*'], log: {}}\n"), nil, []string{
			`f.yaml:4:18: routes[0].on[0]: pattern "search": at byte 6: no '#' before the event; want type#EVENT, such as search#INSERT`,
			`f.yaml:4:26: routes[0].on[1]: pattern "a#INSRT": at byte 2: unknown event "INSRT"; want INSERT, MODIFY, REMOVE, SNAPSHOT, MESSAGE or *`,
			`f.yaml:4:51: routes[0].on[4]: "a#*" is there twice`,
		}},
		"sinks": {minimal("- {name: a, on: 'a#*', send: {to: job}}\n- {name: b, on: 'a#*', send: {to: search}}\n- {name: c, on: 'a#*', project: {to: jobs, index: i, id: '{a}', version: sequence}}\n"), nil, []string{
			`f.yaml:4:35: routes[0].send.to: there is no sink "job"; did you mean jobs?`,
			`f.yaml:5:35: routes[1].send.to: the sink "search" is of opensearch, and one of sqs is needed here; want f or jobs`,
			`f.yaml:6:38: routes[2].project.to: the sink "jobs" is of sqs, and one of opensearch is needed here; want search`,
		}},
		"fifo": {minimal("- {name: a, on: 'a#*', send: {to: f, delay: 5s}}\n- {name: b, on: 'a#*', send: {to: jobs, dedupe: x}}\n- {name: c, on: 'a#*', send: {to: jobs, delay: 16m}}\n"), nil, []string{
			`f.yaml:4:45: routes[0].send.delay: a FIFO queue cannot delay single messages; take a standard queue, or the queue's own delay`,
			`f.yaml:5:49: routes[1].send.dedupe: it is for FIFO queues, whose names end in .fifo`,
			`f.yaml:6:48: routes[2].send.delay: "16m" is not what is wanted here: a duration such as 30s, 5m or 1h30m, at least 0s, at most 15m`,
		}},
		"projection": {minimal("- name: a\n  on: ['a#MESSAGE', 'a#*']\n  project: {index: 'Upper', id: 'x', version: seq, include: ['.a'], rename: {a: b}, flatten: {'a..b': x}, fields: {x: '{'}}\n- {name: b, on: 'a#SNAPSHOT', project: {index: i, id: '{a}', version: none}}\n- {name: c, on: 'a#*', project: {index: i, id: '{a}'}}\n"), nil, []string{
			`f.yaml:5:8: routes[0].on[0]: project has no use for MESSAGE; want INSERT, MODIFY, REMOVE or SNAPSHOT`,
			`f.yaml:6:20: routes[0].project.index: "Upper" `,
			`f.yaml:6:33: routes[0].project.id: template "x" has no attribute`,
			`f.yaml:6:47: routes[0].project.version: "seq" is not allowed; want sequence (the order`,
			`f.yaml:6:62: routes[0].project.include[0]: ".a" has a dot that separates nothing`,
			`f.yaml:6:103: routes[0].project.flatten["a..b"]: "a..b" has a dot that separates nothing`,
			`f.yaml:6:119: routes[0].project.fields.x: `,
			`f.yaml:7:17: routes[1].on: a backfill may read`,
			`f.yaml:8:33: routes[2].project.version: it is missing; want sequence (the order`,
		}},
		"bodies": {minimal("- {name: a, on: 'a#*', send: {to: f, body: '{\"a\":{$evnt}}', group: '{', dedupe: '{$now}'}}\n"), nil, []string{
			`f.yaml:4:44: routes[0].send.body: `,
			`f.yaml:4:68: routes[0].send.group: template "{"`,
			`f.yaml:4:81: routes[0].send.dedupe: {$now} is nothing of a record`,
		}},
		"message attributes": {minimal("- {name: a, on: 'a#*', send: {to: jobs, attributes: {'a b': x, AWS.x: x, a..b: x, dedupeKey: x, none: '', bad: '{', Evnt: '{$evnt}', n: 5}}}\n- {name: b, on: 'a#*', send: {to: jobs, attributes: {a: x, b: x, c: x, d: x, e: x, f: x, g: x, h: x, i: x, j: x, k: x}}}\n- {name: c, on: 'a#*', send: {to: jobs, attributes: {a: x, b: x, c: x, d: x, e: x, f: x, g: x, h: x, i: x, a.b-c_D9: x}}}\n"), nil, []string{
			`f.yaml:4:61: routes[0].send.attributes["a b"]: SQS does not allow this name; want 1 to 256 letters, digits, _, - and single dots inside`,
			`f.yaml:4:71: routes[0].send.attributes["AWS.x"]: SQS does not allow this name`,
			`f.yaml:4:80: routes[0].send.attributes["a..b"]: SQS does not allow this name`,
			`f.yaml:4:94: routes[0].send.attributes.dedupeKey: dedupeKey is an attribute of Sluice's own messages; want another name`,
			`f.yaml:4:103: routes[0].send.attributes.none: the template is empty`,
			`f.yaml:4:112: routes[0].send.attributes.bad: template "{"`,
			`f.yaml:4:123: routes[0].send.attributes.Evnt: {$evnt} is nothing of a record`,
			`f.yaml:4:137: routes[0].send.attributes.n: "5" is not what is wanted here: text, in quotes: "5"`,
			`f.yaml:5:41: routes[1].send.attributes: there are 11; SQS allows 10 in a message`,
		}},
		"projection as a whole": {minimal("- {name: a, on: 'a#*', project: {index: i, id: '{a}', version: sequence, include: [a], rename: {b: c}}}\n"), nil, []string{
			`f.yaml:4:24: routes[0].project: "b" is excluded, or not included`,
		}},
		"tables by type": {"source: {tables: [a01, b01]}\nentityType: {tables: {a01: a, b01: b}}\nroutes:\n- {name: x, on: 'a#REMOVE', cascade: {key: a, children: [{table: b01, key: b, partition: {name: b, from: a}}]}}\n- {name: y, on: '*#REMOVE', cascade: {key: a, children: [{table: b01, key: b, partition: {name: b, from: a}}]}}\n", nil, []string{
			`f.yaml:5:29: routes[1].cascade.table: it is missing, and neither source nor entityType leaves only one; say which has the parents: a01 or b01`,
		}},
		"expressions": {minimal("- {name: a, on: 'a#*', when: 'stats == 1', log: {}}\n- name: b\n  on: a#*\n  when: new.a == now()\n  log: {}\n- name: c\n  on: a#*\n  when: >\n    new.a\n    == (\n  log: {}\n"), nil, []string{
			`f.yaml:4:31: routes[0].when: there is no stats; want`,
			`f.yaml:7:18: routes[1].when: there is no function now;`,
			`f.yaml:11:9: routes[2].when: at line `,
		}},
		"duplicates": {"source: {tables: [orders]}\nname: a\nname: b\nroutes: [{name: x, on: 'a#*', log: {}, log: {}}]\n", nil, []string{
			`f.yaml:3:1: "name" is there twice; it stands in line 2, too`,
			`f.yaml:4:40: routes[0]: "log" is there twice; it stands in line 4, too`,
		}},
		"variables": {minimal("- {name: \"${A}\", on: \"${B}\", attempts: \"${C}\", when: \"new.a == ${D}\", log: {}}\n- {name: \"${E\", on: \"${9}\", log: {level: \"${L}\"}}\n"), map[string]string{"B": "s3cret", "C": "s3cret", "D": "s3cret(", "L": "s3cret"}, []string{
			`f.yaml:4:10: routes[0].name: the variable A is not set; set it, or give a default: ${A:-…}`,
			`f.yaml:4:22: routes[0].on: "${B}" is wrong once its variables are put in; what is wrong is not shown, since they may be secrets`,
			`f.yaml:4:40: routes[0].attempts: "${C}" is not what is wanted here: a whole number of 1 or more`,
			`f.yaml:4:54: routes[0].when: "new.a == ${D}" is wrong once`,
			`f.yaml:5:10: routes[1].name: ${ has no }; write $$ for a dollar sign`,
			`f.yaml:5:21: routes[1].on: ${9} names no variable; want ${NAME} or ${NAME:-default}, or $${ for the characters`,
			`f.yaml:5:42: routes[1].log.level: "${L}" is not allowed; want debug, info, warn or error`,
		}},
		"secret urls": {"source: {tables: [orders]}\nsinks: {s: {opensearch: {urls: ['htps://u:s3cret@h', \"${U}\"]}}}\nroutes: [{name: x, on: 'a#*', log: {}}]\n", map[string]string{"U": "s3cret"}, []string{
			`f.yaml:2:33: sinks.s.opensearch.urls[0]: it is no URL`,
			`f.yaml:2:54: sinks.s.opensearch.urls[1]: it is no URL`,
		}},
		"cascade": {"source: {tables: [a01, b01]}\nsinks: {f: {sqs: {queue: f.fifo}}}\nroutes:\n- name: x\n  on: ['a#*', 'b#INSERT']\n  cascade: {key: [a, b, c], queue: f, children: [{table: t, key: a, partition: {name: b, from: x}}, {table: t, key: a, partition: {name: a, from: x}}]}\n- name: y\n  on: a#REMOVE\n  cascade: {table: a02, key: a, threshold: 5, children: [{table: t, key: a, index: i, partition: {name: b, from: x}}]}\n", nil, []string{
			`f.yaml:5:8: routes[0].on[0]: cascade is for items that are deleted; want #REMOVE in place of #*`,
			`f.yaml:5:15: routes[0].on[1]: cascade has no use for INSERT; want REMOVE`,
			`f.yaml:6:3: routes[0].cascade.table: it is missing, and neither source nor entityType leaves only one; say which has the parents: a01 or b01`,
			`f.yaml:6:13: routes[0].cascade.key: it has 3 names`,
			`f.yaml:6:36: routes[0].cascade.queue: the sink "f" is a FIFO queue, which cannot delay single messages; want a standard one`,
			`f.yaml:6:87: routes[0].cascade.children[0].partition.name: "b" is not the partition key of the children's table, a; set index if they are found by one`,
			`f.yaml:6:101: routes[0].cascade.children[1].name: "" is that of children[0], too; messages could not tell them apart`,
			`f.yaml:9:20: routes[1].cascade.table: the table "a02" is not read; did you mean a01?`,
			`f.yaml:9:44: routes[1].cascade.threshold: it is for a cascade with a queue`,
			`f.yaml:9:84: routes[1].cascade.children[0].index: children that are found by an index need a queue`,
		}},
		"count": {minimal("- name: x\n  on: a#SNAPSHOT\n  count: {id: 'a#b', markers: mmm, life: 1h, deleteOrphans: ppp, numbers: [{table: pap, attribute: n, key: [a, b, c]}, {table: pap, attribute: m, key: a, create: true}]}\n"), nil, []string{
			`f.yaml:5:7: routes[0].on: count has no use for SNAPSHOT; want INSERT, MODIFY or REMOVE`,
			`f.yaml:6:15: routes[0].count.id: "a#b" has a '#'`,
			`f.yaml:6:42: routes[0].count.life: "1h" is not what is wanted here: a duration such as 30s, 5m or 1h30m, at least 25h`,
			`f.yaml:6:61: routes[0].count.deleteOrphans: "ppp" is not a table of numbers; did you mean pap?`,
			`f.yaml:6:103: routes[0].count.numbers[0].key: it has 3 attributes`,
			`f.yaml:6:163: routes[0].count.numbers[1].create: it is unlike that of numbers[0]`,
		}},
		"escalate": {minimal("- {name: x, on: 'a#*', escalate: {do: next}}\n- {name: y, on: 'a#REMOVE', escalate: {do: begin, queue: f}}\n"), nil, []string{
			`f.yaml:4:24: routes[0].escalate.ladder: it is missing; only other routes than those of start`,
			`f.yaml:4:24: routes[0].escalate.queue: it is missing; only other routes than those of start`,
			`f.yaml:4:24: routes[0].escalate.watch: it is missing; only other routes than those of start`,
			`f.yaml:5:17: routes[1].on: escalate has no use for REMOVE`,
			`f.yaml:5:44: routes[1].escalate.do: "begin" is not allowed; want start, next, resume or contact`,
			`f.yaml:5:58: routes[1].escalate.queue: the sink "f" is a FIFO queue`,
		}},
		"contact": {minimal("- {name: x, on: ['a#INSERT', 'k.attempt#MESSAGE'], escalate: {do: contact, queue: f}}\n- {name: y, on: 'k.attempt#MESSAGE', escalate: {do: contact, contact: {url: '{a', body: '{\"a\":', timeout: 0s}}}\n- {name: z, on: 'a#INSERT', escalate: {do: next, contact: {url: x}}}\n"), nil, []string{
			`f.yaml:4:18: routes[0].on[0]: escalate has no use for INSERT; want MESSAGE`,
			`f.yaml:4:52: routes[0].escalate.contact: it is missing; a route of contact calls its url`,
			`f.yaml:4:52: routes[0].escalate.ladder: it is missing`,
			`f.yaml:4:52: routes[0].escalate.watch: it is missing`,
			`f.yaml:4:83: routes[0].escalate.queue: the sink "f" is a FIFO queue`,
			`f.yaml:5:38: routes[1].escalate.ladder: it is missing`,
			`f.yaml:5:38: routes[1].escalate.queue: it is missing`,
			`f.yaml:5:38: routes[1].escalate.watch: it is missing`,
			`f.yaml:5:77: routes[1].escalate.contact.url: template "{a", byte 0: '{' without '}'`,
			`f.yaml:5:89: routes[1].escalate.contact.body: body: it is neither JSON nor a text`,
			`f.yaml:5:107: routes[1].escalate.contact.timeout: "0s" is not what is wanted here`,
			`f.yaml:6:29: routes[2].escalate.ladder: it is missing`,
			`f.yaml:6:29: routes[2].escalate.queue: it is missing`,
			`f.yaml:6:29: routes[2].escalate.watch: it is missing`,
			`f.yaml:6:50: routes[2].escalate.contact: it is for a route of contact`,
		}},
		"source": {"source: {tables: ['arn:aws:x', ab], queues: ['a b'], start: EARLIEST, backfill: true, backfillUnits: 0}\nroutes: [{name: x, on: 'a#*', log: {}}]\n", nil, []string{
			`f.yaml:1:19: source.tables[0]: "arn:aws:x" is not the ARN of a stream`,
			`f.yaml:1:32: source.tables[1]: "ab" is no table's name`,
			`f.yaml:1:46: source.queues[0]: "a b" is no queue`,
			`f.yaml:1:61: source.start: "EARLIEST" is not allowed; want TRIM_HORIZON or LATEST`,
			`f.yaml:1:81: source.backfill: no route names SNAPSHOT`,
			`f.yaml:1:102: source.backfillUnits: "0" is not what is wanted here: a number above 0`,
		}},
		"sizes": {"source: {tables: [orders]}\nlimits: {heldBytes: 64MiB, windowBytes: 0, window: 64k}\nroutes: [{name: x, on: 'a#*', log: {}}]\n", nil, []string{
			`f.yaml:2:21: limits.heldBytes: "64MiB" is not what is wanted here: a whole number of bytes without a unit, 1 or more, such as 1048576 (1 MiB)`,
			`f.yaml:2:41: limits.windowBytes: "0" is not what is wanted here: a whole number of bytes without a unit, 1 or more, such as 1048576 (1 MiB)`,
			`f.yaml:2:52: limits.window: "64k" is not what is wanted here: a whole number of 1 or more`,
		}},
		"entity type of a table without a name": {"source: {tables: [orders]}\nentityType: {tables: {'${NO}': a}}\nroutes: [{name: x, on: 'a#*', log: {}}]\n", nil, []string{
			`f.yaml:2:23: entityType.tables: the variable NO is not set`,
		}},
		"entity type": {"source: {tables: [orders]}\nentityType: {attribute: a, key: {attribute: PK, pattern: '{typ}#*'}}\nroutes: [{name: x, on: 'a#*', log: {}}]\n", nil, []string{
			`f.yaml:2:1: entityType: want one of attribute, key and tables, and there are 2`,
			`f.yaml:2:58: entityType.key.pattern: key pattern "{typ}#*": at byte 0`,
		}},
		"files": {"source: {tables: [orders]}\nsinks: {s: {opensearch: {urls: 'http://h', username: u, caFile: no.pem, indices: [{alias: a, file: no.json}]}}}\nroutes: [{name: x, on: 'a#*', log: {}}]\n", nil, []string{
			`f.yaml:2:13: sinks.s.opensearch: username and password go together, and one of them is missing`,
			`f.yaml:2:65: sinks.s.opensearch.caFile: "no.pem": there is no such file`,
			`f.yaml:2:100: sinks.s.opensearch.indices[0].file: "no.json": there is no such file`,
		}},
		"empty":         {"", nil, []string{"f.yaml:1:1: the file is empty; `sluice init` writes a first one"}},
		"only comments": {"# nothing\n", nil, []string{"f.yaml:1:1: the file is empty"}},
		"a list":        {"- a\n", nil, []string{"f.yaml:1:1: the file is a list; want a mapping with source and routes"}},
		"documents":     {"name: a\n---\nname: b\n", nil, []string{"f.yaml:3:1: a second document begins here (after --- or ...); a configuration is one document"}},
		"tab":           {"source:\n\ttables: x\n", nil, []string{"f.yaml:2:1: a tab in the indentation, for which YAML takes spaces only"}},
		"utf-16":        {"\xff\xfen\x00a\x00", nil, []string{"f.yaml:1:1: the file is UTF-16 or UTF-32; save it as UTF-8"}},
		"utf-16 bare":   {"n\x00a\x00", nil, []string{"f.yaml:1:1: the file is UTF-16 or UTF-32; save it as UTF-8"}},
		"latin-1":       {"name: a\nx: caf\xe9\n", nil, []string{"f.yaml:2:7: a character that YAML does not take: byte 0xe9; save the file as UTF-8"}},
		"huge":          {strings.Repeat("#\n", maxText), nil, []string{"f.yaml:1:1: the file has 2097152 bytes, more than the 1048576 that are read: is it a configuration?"}},
		"deep":          {"a: " + strings.Repeat("[", 5000), nil, []string{"f.yaml:1:132: lists and mappings stand in each other more than 32 deep"}},
		"anchors":       {"name: &a x\nsource: *a\n", nil, []string{"f.yaml:1:7: anchors (&) and aliases (*) are not taken"}},
		"merge":         {"source: {tables: [orders]}\nroutes:\n- <<: {name: x}\n", nil, []string{"f.yaml:3:3: merging (<<) is not taken"}},
		"tags":          {"name: !!str x\n", nil, []string{"f.yaml:1:7: tags (!) are not taken"}},
		"syntax":        {"source: {tables: [orders]\nroutes: []\n", nil, []string{"f.yaml:2:1: no YAML: "}},
		"too deep":      {"source:\n  tables: [orders]\n    name: x\nroutes: []\n", nil, []string{"f.yaml:3:5: no YAML: value is not allowed in this context; is the line, or the one before it, indented as far as its neighbours?"}},
		"too shallow":   {"source:\n  tables: [orders]\n name: x\nroutes: []\n", nil, []string{"f.yaml:3:2: no YAML: value is not allowed in this context; is the line, or the one before it, indented as far as its neighbours?"}},
		"star":          {minimal("- {name: a, log: {}, on: *#*}\n"), nil, []string{"f.yaml:4:26: no YAML: undefined alias name; a pattern that begins with * stands in quotes: '*#*'"}},
		"star in list":  {minimal("- name: a\n  on: [*#*]\n  log: {}\n"), nil, []string{"f.yaml:6:8: no YAML: unexpected map key; a pattern that begins with * stands in quotes: '*#*'"}},
		"flow variable": {"source: {tables: [${T}]}\n", map[string]string{"T": "x"}, []string{`f.yaml:1:20: no YAML: ',' or ']' must be specified; within [ ] and { } a variable stands in quotes: "${NAME}"`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("f.yaml", "", []byte(tt.text), environ(tt.env))
			all := Errors{}
			if !errors.As(err, &all) {
				t.Fatalf("%v", err)
			}
			lines := strings.Split(err.Error(), "\n")
			for i := range max(len(lines), len(tt.want)) {
				got, want := "", "nothing more"
				if i < len(lines) {
					got = lines[i]
				}
				if i < len(tt.want) {
					want = tt.want[i]
				}
				if !strings.HasPrefix(got, want) {
					t.Errorf("got  %s\nwant %s", got, want)
				}
			}
			if strings.Contains(err.Error(), "s3cret") {
				t.Errorf("a secret is shown: %v", err)
			}
		})
	}
}

// A variable's value cannot change the structure of the file.
func TestVariables(t *testing.T) {
	text := minimal("- {name: \"${A}\", on: 'a#*', when: 'new.a == \"$$5$x${B:-d}\"', attempts: \"${N}\", maxAge: \"${EMPTY}\", log: {message: \"${M:-}\"}}\n")
	c, err := Parse("f.yaml", "", []byte(text), environ(map[string]string{"A": "x, log: {}} # '\"", "N": "7", "EMPTY": ""}))
	if err != nil {
		t.Fatal(err)
	}
	r := c.Routes[0]
	if r.Name != "x, log: {}} # '\"" || r.When != `new.a == "$5$xd"` || r.Attempts != 7 || r.MaxAge != 0 || r.Log.Message != "" {
		t.Errorf("%+v", r)
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "sluice.yaml")
	_, err := Load(path, nil)
	if !errors.Is(err, os.ErrNotExist) || err.Error() != path+": there is no such file" {
		t.Errorf("%v", err)
	}
	if _, err := Load(dir, nil); err == nil || !strings.HasSuffix(err.Error(), "it is a directory; want a file") {
		t.Errorf("%v", err)
	}
	// Files that the configuration names are relative to it.
	if err := os.WriteFile(filepath.Join(dir, "index.json"), []byte(`{"settings":{}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	text := "\uFEFFsource: {tables: orders}\r\nsinks: {s: {opensearch: {urls: 'http://h', indices: [{alias: a, file: index.json}]}}}\r\nroutes: [{name: x, on: 'a#*', log: {}}]\r\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path, nil); err != nil {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	for _, s := range []string{"", "a: [", "- - - -", "? a\n: b\n", "a: |\n  x\n y", "{a: b, c: ${D}}", "a: &a [*a]", "\t", "a: \"\\x", "source: {tables: [a\nb]}", "%YAML 1.2\n---\na: 1\n...\n", "when: ((((", "\r\r<", "<<: *a"} {
		f.Add([]byte(s))
	}
	f.Add([]byte("entityType: [{key: {}}, kind]\n" + minimal("- {name: x, on: 'a#*', when: new.a, log: {}}\n")))
	f.Add([]byte(minimal("- {name: x, on: 'a#*', when: 'new.a == 1 && any(new.b, # > 1)', log: {}}\n")))
	f.Fuzz(func(t *testing.T, text []byte) {
		_, err := Parse("f", t.TempDir(), text, environ(map[string]string{"A": "x"}))
		if err == nil {
			return
		}
		all := Errors{}
		if !errors.As(err, &all) || len(all) == 0 {
			t.Fatalf("%T %v", err, err)
		}
		lines := strings.Count(string(text), "\n") + strings.Count(string(text), "\r") + 1
		for _, e := range all {
			if e.Line < 1 || e.Column < 1 || e.Line > lines+1 || e.Problem == "" {
				t.Errorf("%+v of %d lines", e, lines)
			}
		}
	})
}

// A condition over an image that only one of INSERT and REMOVE has would count
// additions without subtractions.
func TestWhenOfCount(t *testing.T) {
	file := func(when, of string) string {
		return "source: {tables: [orders]}\nroutes:\n- {name: x, on: 'a#*', when: '" + when + "', count: {id: c, markers: markers, numbers: [{table: maps, attribute: n, key: [PK]" + of + "}]}}\n"
	}
	for _, when := range []string{`new.live`, `(new ?? old).live`, `event == "REMOVE" || new.live`} {
		_, err := Parse("f", "", []byte(file(when, "")), nil)
		if err == nil || !strings.Contains(err.Error(), "f:3:30: routes[0].when: it reads the item") {
			t.Errorf("%s: %v", when, err)
		}
	}
	for _, text := range []string{file(`keys.PK startsWith "x" && table == "orders"`, ""), file(`event != ""`, ", when: new.live")} {
		if _, err := Parse("f", "", []byte(text), nil); err != nil {
			t.Errorf("%v\n%s", err, text)
		}
	}
}
