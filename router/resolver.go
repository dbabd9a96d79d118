package router

import (
	"fmt"
	"maps"
	"slices"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/keypattern"
	"github.com/sluicehq/sluice/item"
)

// Resolver returns the type of a record, or that it is unknown.
//
// It reads the item after the change. For a removed item it reads the old image,
// or the keys if the stream has no old images. [Table] at the end of a [Chain]
// answers if both fail.
type Resolver struct {
	kind  resolverKind
	name  string // of the attribute
	key   keypattern.Pattern
	types map[string]string
	f     func(*sluice.Record) (string, error)
	by    map[string]Resolver
	chain []Resolver
}

type resolverKind uint8

const (
	noResolver resolverKind = iota
	byAttribute
	byKeyPattern
	byTableName
	byFunc
	byTable
	byChain
)

// Attribute takes the type from a string attribute. A record without the attribute
// has no type. A record whose attribute is not a string fails permanently. So does
// a record without an image, if a route might want it. A route for one type
// therefore needs a stream with the images that contain the type, unless a [Chain]
// ends with a resolver that needs none. For a key attribute use [KeyPattern].
func Attribute(name string) Resolver { return Resolver{kind: byAttribute, name: name} }

// KeyPattern takes the type from the key attribute of that name, which every record
// has. pattern describes the whole value in segments, separated by '#':
//
//	TYPE#*#*#{type}   TYPE#Ed-Fi#3.3.1-b#School is a School
//	{type}#**         user#17 is a user, as is user#17#2024
//	{type}-*          order-5 is an order, order-5#1 does not match
//
// In a segment, `*` matches any text, even none. {type} matches the type, which is
// never empty. Both match as little as possible. `**` as the last segment matches
// one or more segments of any text. All other text matches itself. If a value does
// not match, or the key is not a string, the type is unknown. KeyPattern panics when
// the pattern is malformed.
func KeyPattern(attribute, pattern string) Resolver {
	if attribute == "" {
		panic(fmt.Sprintf("router: KeyPattern: key pattern %q: no attribute is named", pattern))
	}
	p, err := keypattern.Parse(pattern)
	if err != nil {
		panic("router: KeyPattern: " + err.Error())
	}
	return Resolver{kind: byKeyPattern, name: attribute, key: p}
}

// Table takes the type from the name of the record's table: types maps names to
// types. If types is nil, the name is the type.
func Table(types map[string]string) Resolver {
	return Resolver{kind: byTableName, types: maps.Clone(types)}
}

// Func takes the type from f; "" is unknown. f must be safe for concurrent use and
// depend only on the record. Its error fails the record permanently.
func Func(f func(*sluice.Record) (string, error)) Resolver {
	if f == nil {
		panic("router: Func: nil function")
	}
	return Resolver{kind: byFunc, f: f}
}

// ByTable uses the resolver for the name of the record's table. Records of other
// tables have an unknown type.
func ByTable(resolvers map[string]Resolver) Resolver {
	for table, r := range resolvers {
		if r.kind == noResolver {
			panic(fmt.Sprintf("router: ByTable: the zero Resolver for table %q", table))
		}
	}
	return Resolver{kind: byTable, by: maps.Clone(resolvers)}
}

// Chain asks one resolver after another and returns the first known type.
func Chain(resolvers ...Resolver) Resolver {
	if i := slices.IndexFunc(resolvers, func(r Resolver) bool { return r.kind == noResolver }); i >= 0 {
		panic(fmt.Sprintf("router: Chain: resolver %d is the zero Resolver", i))
	}
	return Resolver{kind: byChain, chain: slices.Clone(resolvers)}
}

// Type returns the record's type, or "" when it is unknown.
func (r Resolver) Type(rec *sluice.Record) (string, error) {
	typ, err := r.appendType(nil, rec)
	return string(typ), err
}

// appendType appends the type to dst, which must be empty, or nothing if it is
// unknown. It is a switch and not a function value, so that the caller's buffer
// stays on its stack.
func (r *Resolver) appendType(dst []byte, rec *sluice.Record) ([]byte, error) {
	switch r.kind {
	case byAttribute:
		v, ok := image(rec).Lookup(r.name)
		if !ok {
			return dst, nil
		}
		if v.Kind() != item.S {
			return dst, fmt.Errorf("attribute %q is of type %v, want S", r.name, v.Kind())
		}
		return append(dst, v.Text()...), nil
	case byKeyPattern:
		v, ok := rec.Keys.Lookup(r.name)
		if !ok || v.Kind() != item.S {
			return dst, nil
		}
		dst = append(dst, v.Text()...)
		from, to := r.key.Find(dst)
		return append(dst[:0], dst[from:to]...), nil
	case byTableName:
		if r.types == nil {
			return append(dst, rec.Table...), nil
		}
		return append(dst, r.types[rec.Table]...), nil
	case byFunc:
		typ, err := r.f(rec)
		return append(dst, typ...), err
	case byTable:
		if next, ok := r.by[rec.Table]; ok {
			return next.appendType(dst, rec)
		}
	case byChain:
		for i := range r.chain {
			typ, err := r.chain[i].appendType(dst, rec)
			if err != nil || len(typ) > 0 {
				return typ, err
			}
		}
	}
	return dst, nil
}

// readsImage reports whether only attributes in images tell the type of table's
// records; false in doubt.
func (r *Resolver) readsImage(table string) bool {
	switch r.kind {
	case byAttribute:
		return true
	case byTable:
		next, ok := r.by[table]
		return ok && next.readsImage(table)
	case byChain:
		for i := range r.chain {
			if !r.chain[i].readsImage(table) {
				return false
			}
		}
		return len(r.chain) > 0
	}
	return false
}

// hasImage reports whether the record has more than the keys.
func hasImage(rec *sluice.Record) bool {
	return rec.Old.Exists() || rec.EventName != sluice.Remove && rec.New.Exists()
}

// image is the state of the item from which the type is read.
func image(rec *sluice.Record) sluice.Item {
	if rec.EventName != sluice.Remove && rec.New.Exists() {
		return rec.New
	}
	if rec.Old.Exists() {
		return rec.Old
	}
	return rec.Keys
}
