package cascade

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/message"
	"github.com/sluicehq/sluice/item"
)

// Kind is the kind of the messages; its route is "cascade.delete#MESSAGE".
const Kind = "cascade.delete"

const (
	sweepName  = "sweep"
	beginsWith = "begins_with"
	notNewer   = "notNewer"
)

// message returns the message that continues t.
func (t *target) message() sluice.Message {
	var key, parent, b message.Body
	appendKey(&key, t.partition, t.child.Partition.Name)
	if t.prefix != "" {
		var p message.Body
		key.JSON(t.child.Sort.Name, p.Str(beginsWith, t.prefix).Bytes())
	}
	var parentKey message.Body
	for _, name := range t.c.c.Key {
		appendKey(&parentKey, t.parent, name)
	}
	parent.Str("table", t.c.c.Table).JSON("key", parentKey.Bytes())
	dedupeKey := t.dedupeKey()
	b.Str("kind", Kind).Str("table", t.child.Table).JSON("key", key.Bytes()).JSON("parent", parent.Bytes()).Str("dedupeKey", dedupeKey)
	if t.child.Name != "" {
		b.Str("child", t.child.Name)
	}
	if t.limit.Exists() {
		var limit message.Body
		appendKey(&limit, t.limit, t.child.NotNewer.Name)
		b.JSON(notNewer, limit.Bytes())
	}
	if t.sweep {
		b.JSON(sweepName, []byte("true"))
	}
	return sluice.Message{
		Body:       string(b.Bytes()),
		Attributes: map[string]sluice.MessageAttribute{"dedupeKey": {Value: dedupeKey}},
	}
}

// appendKey adds a key attribute: text as it is, other types with their tag.
func appendKey(b *message.Body, key sluice.Item, name string) {
	v, _ := key.Lookup(name)
	if v.Kind() == item.S {
		b.Str(name, v.Str())
		return
	}
	var tagged message.Body
	b.JSON(name, tagged.Str(v.Kind().String(), plain(v)).Bytes())
}

// plain returns the text of a key's value, and base64 for a B. Raw bytes would
// differ with the writer's escapes.
func plain(v item.Value) string {
	if v.Kind() == item.B {
		return base64.StdEncoding.EncodeToString(v.Bytes())
	}
	return v.Str()
}

// escaped keeps different keys different in a dedupeKey. It also escapes the
// characters that SQS refuses: a parent with one could not be handed over.
var escaped = func() *strings.Replacer {
	pairs := []string{"%", "%25", "/", "%2F", "#", "%23", "\uFFFE", "%EF%BF%BE", "\uFFFF", "%EF%BF%BF"}
	for c := range ' ' {
		if !strings.ContainsRune("\t\n\r", c) {
			pairs = append(pairs, string(c), fmt.Sprintf("%%%02X", c))
		}
	}
	return strings.NewReplacer(pairs...)
}()

func (t *target) dedupeKey() string {
	parts := []string{escaped.Replace(t.c.c.Table)}
	for _, name := range t.c.c.Key {
		v, _ := t.parent.Lookup(name)
		parts = append(parts, escaped.Replace(plain(v)))
	}
	k := strings.Join(parts, "/")
	if t.child.Name != "" {
		k += "#" + escaped.Replace(t.child.Name)
	}
	if t.sweep {
		k += "#" + sweepName
	}
	return k
}

// head identifies the Cascade of a message.
type head struct{ table, child string }

func headOf(body sluice.Item) (h head, err error) {
	if h.table, err = text(body, "parent.table", true); err != nil {
		return h, err
	}
	h.child, err = text(body, "child", false)
	return h, err
}

// parse returns the target of a message of this Cascade.
func (c *Cascade) parse(body sluice.Item, child *Child) (*target, error) {
	t := &target{c: c, child: child}
	table, err := text(body, "table", true)
	if err != nil {
		return nil, err
	}
	if table != child.Table {
		return nil, fmt.Errorf("it is about table %s; the children of table %s that it names are in table %s", table, c.c.Table, child.Table)
	}
	parent, err := object(body, "parent.key")
	if err != nil {
		return nil, err
	}
	if t.parent, err = parseKey(parent, "parent.key", c.c.Key); err != nil {
		return nil, err
	}
	key, err := object(body, "key")
	if err != nil {
		return nil, err
	}
	names := []string{child.Partition.Name}
	if child.Sort.Name != "" {
		v, ok := key.Lookup(child.Sort.Name + "." + beginsWith)
		if t.prefix = v.Str(); !ok || v.Kind() != item.S || t.prefix == "" {
			return nil, fmt.Errorf("key.%s is no {%q:…}", child.Sort.Name, beginsWith)
		}
		names = append(names, child.Sort.Name)
	}
	if key.Len() != len(names) { // the message might mean fewer rows
		return nil, fmt.Errorf("key has %d attributes; want %q", key.Len(), names)
	}
	if t.partition, err = parseKey(key, "key", names[:1]); err != nil {
		return nil, err
	}
	if fault := t.strays(); fault != "" {
		return nil, errors.New(fault)
	}
	if _, ok := body.Lookup(notNewer); ok {
		limit, err := object(body, notNewer)
		if err != nil {
			return nil, err
		}
		if t.limit, err = parseKey(limit, notNewer, []string{child.NotNewer.Name}); err != nil {
			return nil, err
		}
	}
	if v, ok := body.Lookup(sweepName); ok {
		if v.Kind() != item.BOOL {
			return nil, errors.New("sweep is neither true nor false")
		}
		t.sweep = v.Bool()
	}
	return t, nil
}

// parseKey returns the key in an object of a message.
func parseKey(in sluice.Item, path string, names []string) (sluice.Item, error) {
	var b message.Body
	for _, name := range names {
		v, ok := in.Lookup(name)
		kind, value := item.S, v
		if ok && v.Kind() == item.M && v.Len() == 1 {
			for tag, tagged := range v.Map().All() {
				switch value = tagged; tag {
				case "N":
					kind = item.N
				case "B":
					kind = item.B
				default:
					ok = false
				}
			}
		}
		if !ok || value.Kind() != item.S || value.Len() == 0 {
			return sluice.Item{}, fmt.Errorf(`%s.%s is missing, or neither a string, {"N":"…"} nor {"B":"…"}`, path, name)
		}
		var tagged message.Body
		b.JSON(name, tagged.JSON(kind.String(), value.Raw()).Bytes())
	}
	key, err := item.Parse(b.Bytes())
	if err != nil {
		return sluice.Item{}, fmt.Errorf("%s: %w", path, err)
	}
	return key, nil
}

func text(body sluice.Item, path string, required bool) (string, error) {
	v, ok := body.Lookup(path)
	switch {
	case ok && v.Kind() == item.S && v.Len() > 0:
		return v.Str(), nil
	case !ok && !required:
		return "", nil
	}
	return "", fmt.Errorf("%s is missing or no text", path)
}

func object(body sluice.Item, path string) (sluice.Item, error) {
	v, ok := body.Lookup(path)
	if !ok || v.Kind() != item.M {
		return sluice.Item{}, fmt.Errorf("%s is missing or no object", path)
	}
	return v.Map(), nil
}
