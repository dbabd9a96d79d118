package cascade

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/item"
)

// target is the children of one kind and one parent.
type target struct {
	c         *Cascade
	child     *Child
	parent    sluice.Item // key of the parent
	partition sluice.Item // one attribute
	prefix    string      // of the sort key; "" is none
	limit     sluice.Item // one attribute, of NotNewer; absent is none
	sweep     bool        // the target of a sweep
}

// parentKey returns the key in key attributes or an item.
func (c *Cascade) parentKey(it sluice.Item) (sluice.Item, error) {
	return keyOf(it, c.c.Table, c.c.Key)
}

// keyOf returns the key of an item of a table.
func keyOf(it sluice.Item, table string, names []string) (sluice.Item, error) {
	for _, name := range names {
		v, ok := it.Lookup(name)
		if !ok {
			return sluice.Item{}, fmt.Errorf("an item of table %s has no attribute %q, which is said to be of its key", table, name)
		}
		if k := v.Kind(); k != item.S && k != item.N && k != item.B {
			return sluice.Item{}, fmt.Errorf("attribute %q of an item of table %s is of type %v, which no key attribute is", name, table, k)
		}
	}
	key := it.Only(names...)
	if key.Len() != len(names) { // a dotted path was found instead of the whole name
		return sluice.Item{}, fmt.Errorf("an item of table %s has no attributes %q, which are said to be its key", table, names)
	}
	return key, nil
}

// target returns the children of a parent that was deleted at a time. It returns
// false if the parent lacks an attribute of their keys, and so has none. image is
// the parent's old item, if known.
func (c *Cascade) target(child *Child, parent, image sluice.Item, deleted time.Time) (*target, bool, error) {
	t := &target{c: c, child: child, parent: parent}
	limit, err := child.NotNewer.of(image, deleted)
	if err != nil {
		return nil, false, err
	}
	t.limit = limit
	partition, ok, err := child.Partition.of(parent, image)
	if err != nil || !ok {
		return nil, false, err
	}
	t.partition = item.Of(partition)
	if child.Sort.Name == "" {
		return t, true, nil
	}
	prefix, ok, err := child.Sort.of(parent, image)
	if err != nil || !ok {
		return nil, false, err
	}
	v, _ := item.Of(prefix).Lookup(child.Sort.Name)
	if v.Kind() != item.S {
		return nil, false, fmt.Errorf("attribute %q of the parent is of type %v; the prefix of a sort key is text", child.Sort.From, v.Kind())
	}
	t.prefix = v.Str()
	return t, true, nil
}

// of returns the attribute from the parent's key or image; false if both lack it.
func (a Attr) of(key, image sluice.Item) (item.Attribute, bool, error) {
	if a.From == "" {
		return item.String(a.Name, a.Before+a.After), true, nil
	}
	v, found := key.Lookup(a.From)
	if !found {
		v, found = image.Lookup(a.From)
	}
	switch k := v.Kind(); {
	case !found && !image.Exists():
		return item.Attribute{}, false, fmt.Errorf("attribute %q of the parent is not in its key, and there is no image: the stream must have old images", a.From)
	case !found, k == item.NULL, v.Len() == 0 && (k == item.S || k == item.B):
		return item.Attribute{}, false, nil
	case a.Before != "" || a.After != "":
		if k != item.S && k != item.N {
			return item.Attribute{}, false, fmt.Errorf("attribute %q of the parent is of type %v, no text to put between %q and %q", a.From, k, a.Before, a.After)
		}
		return item.String(a.Name, a.Before+v.Str()+a.After), true, nil
	case k != item.S && k != item.N && k != item.B:
		return item.Attribute{}, false, fmt.Errorf("attribute %q of the parent is of type %v; a key is of type S, N or B", a.From, k)
	}
	return attributeOf(a.Name, v), true, nil
}

// query returns a query for the keys of the children, from the start.
func (t *target) query() dynamo.Query {
	q := dynamo.Query{
		Table: t.child.Table, Index: t.child.Index, Limit: t.c.c.PageSize,
		Partition: attribute(t.partition, t.child.Partition.Name),
	}
	if t.prefix != "" {
		q.Sort = dynamo.Prefix(t.child.Sort.Name, t.prefix)
	}
	q.Attributes = append(q.Attributes, t.child.Key...)
	if t.child.Index == "" {
		if t.limit.Exists() {
			q.Attributes = append(q.Attributes, t.child.NotNewer.Name)
		}
		for _, path := range t.child.Attributes {
			for _, name := range mayBegin(path) {
				if !slices.Contains(q.Attributes, name) {
					q.Attributes = append(q.Attributes, name)
				}
			}
		}
	}
	return q
}

// mayBegin returns the attributes with which a dotted path may begin, as Lookup
// resolves it. If the query omitted one, Exclude would miss it, and a row that
// must stay would be deleted.
func mayBegin(path string) (names []string) {
	for i, c := range path {
		if c == '.' && i > 0 {
			names = append(names, path[:i])
		}
	}
	return append(names, path)
}

// attribute returns the key attribute of that name.
func attribute(it sluice.Item, name string) item.Attribute {
	v, _ := it.Lookup(name)
	return attributeOf(name, v)
}

// attributeOf returns an attribute with a value of a key.
func attributeOf(name string, v item.Value) item.Attribute {
	switch v.Kind() {
	case item.N:
		return item.Number(name, v.Str())
	case item.B:
		return item.Binary(name, v.Bytes())
	}
	return item.String(name, v.Str())
}

// strays describes how the partition and prefix of a message differ from those of
// its parent's key; "" if they agree. Other attributes cannot be checked, because
// the parent is gone.
func (t *target) strays() string {
	if want, ok, err := t.child.Partition.of(t.parent, sluice.Item{}); err == nil && ok && !item.Of(want).Equal(t.partition) {
		return "key is not that of the parent's children"
	}
	if t.prefix == "" {
		return ""
	}
	if want, ok, err := t.child.Sort.of(t.parent, sluice.Item{}); err == nil && ok && !item.Of(want).Equal(item.Of(item.String(t.child.Sort.Name, t.prefix))) {
		return "key does not begin as those of the parent's children do"
	}
	return ""
}

// isParent reports whether a row of the children's table is the parent's own.
func (t *target) isParent(key sluice.Item) bool {
	return t.child.Table == t.c.c.Table && key.Equal(t.parent)
}

// deletion returns the deletion of rows, without its guard. If the key cannot tell
// whether a row may be deleted, a condition does.
func (t *target) deletion(keys []sluice.Item) dynamo.GuardedDelete {
	d := dynamo.GuardedDelete{Table: t.child.Table, Keys: keys, Names: map[string]string{}, Values: map[string]any{}}
	var terms []string
	add := func(term, placeholder, attribute string, value any) {
		terms = append(terms, term)
		d.Names["#"+placeholder], d.Values[":"+placeholder] = attribute, value
	}
	if t.child.Index != "" {
		partition, _ := t.partition.Lookup(t.child.Partition.Name)
		add("#p = :p", "p", t.child.Partition.Name, partition)
		if t.prefix != "" {
			add("begins_with(#s, :s)", "s", t.child.Sort.Name, t.prefix)
		}
	}
	if limit, ok := t.limit.Lookup(t.child.NotNewer.Name); ok {
		term := "attribute_not_exists(#n) OR #n " + t.child.NotNewer.operator() + " :n"
		if len(terms) > 0 {
			term = "(" + term + ")"
		}
		add(term, "n", t.child.NotNewer.Name, limit)
	}
	d.Condition = strings.Join(terms, " AND ")
	return d
}

// belongs reports whether an item's own attributes make it a child of the parent.
func (t *target) belongs(it sluice.Item) bool {
	want, _ := t.partition.Lookup(t.child.Partition.Name)
	if v, ok := it.Lookup(t.child.Partition.Name); !ok || !v.Equal(want) {
		return false
	}
	if t.prefix == "" {
		return true
	}
	v, ok := it.Lookup(t.child.Sort.Name)
	return ok && v.Kind() == item.S && strings.HasPrefix(v.Str(), t.prefix)
}
