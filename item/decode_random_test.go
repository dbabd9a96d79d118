package item_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"

	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/item/sdkitem"
)

type (
	flag    bool
	small   int8
	word    string
	letters []rune
	strs    []string
	digest  [2]byte
	octet   uint8
	octets  []octet
	lookup  map[word]*small
	Base    struct{ X, Y any }
)

var leaves = []reflect.Type{
	reflect.TypeFor[string](), reflect.TypeFor[word](), reflect.TypeFor[attributevalue.Number](),
	reflect.TypeFor[bool](), reflect.TypeFor[flag](),
	reflect.TypeFor[int](), reflect.TypeFor[small](), reflect.TypeFor[int16](), reflect.TypeFor[int64](), reflect.TypeFor[time.Duration](),
	reflect.TypeFor[uint](), reflect.TypeFor[uint8](), reflect.TypeFor[uint32](), reflect.TypeFor[octet](),
	reflect.TypeFor[float32](), reflect.TypeFor[float64](),
	reflect.TypeFor[[]byte](), reflect.TypeFor[[2]byte](), reflect.TypeFor[digest](), reflect.TypeFor[octets](), reflect.TypeFor[namedBytes](),
	reflect.TypeFor[letters](), reflect.TypeFor[strs](), reflect.TypeFor[lookup](),
	reflect.TypeFor[time.Time](), reflect.TypeFor[stamp](), reflect.TypeFor[any](), reflect.TypeFor[fmt.Stringer](),
	reflect.TypeFor[Base](), reflect.TypeFor[chan int](), reflect.TypeFor[struct {
		Base
		*promoted2
	}](), reflect.TypeFor[struct {
		*Base
		X string
	}](),
}

type promoted2 struct{ W []string }

var keyTypes = []reflect.Type{
	reflect.TypeFor[string](), reflect.TypeFor[word](), reflect.TypeFor[int](), reflect.TypeFor[small](), reflect.TypeFor[uint16](),
	reflect.TypeFor[float64](), reflect.TypeFor[bool](), reflect.TypeFor[[2]int](), reflect.TypeFor[any](),
}

var attrNames = []string{"A", "b", "CamelCase", "under_score", "Größe", "X", "Y", "W", "1", "-2", "true"}

func randomType(rng *rand.Rand, depth int) reflect.Type {
	if depth == 0 || rng.IntN(3) == 0 {
		return leaves[rng.IntN(len(leaves))]
	}
	switch rng.IntN(6) {
	case 0:
		return reflect.PointerTo(randomType(rng, depth-1))
	case 1:
		return reflect.SliceOf(randomType(rng, depth-1))
	case 2:
		return reflect.ArrayOf(rng.IntN(4), randomType(rng, depth-1))
	case 3:
		return reflect.MapOf(keyTypes[rng.IntN(len(keyTypes))], randomType(rng, depth-1))
	}
	return randomStruct(rng, depth)
}

func randomStruct(rng *rand.Rand, depth int) reflect.Type {
	var fields []reflect.StructField
	for i := range rng.IntN(5) {
		f := reflect.StructField{Name: []string{"A", "B", "CamelCase", "UNDER_SCORE", "Größe"}[i], Type: randomType(rng, depth-1)}
		tag := []string{"", "", attrNames[rng.IntN(len(attrNames))], "-"}[rng.IntN(4)] +
			[]string{"", "", ",omitempty", ",string", ",unixtime", ",stringset", ",omitempty,string"}[rng.IntN(7)]
		if tag != "" {
			f.Tag = reflect.StructTag(`dynamodbav:"` + tag + `"`)
		}
		fields = append(fields, f)
	}
	return reflect.StructOf(fields)
}

func pick(rng *rand.Rand, of ...string) string { return of[rng.IntN(len(of))] }

func randomNumber(rng *rand.Rand) string {
	return pick(rng, "0", "-0", "1", "-1", "7", "127", "128", "-128", "-129", "255", "256", "65536", "9223372036854775807", "9223372036854775808",
		"1.5", "1.0", "1E2", "3.4E38", "3.5E38", "1E125", "1E-130", "+5", "007", ".5", "5.", "99999999999999999999999999999999999999", "1714558830")
}

func randomString(rng *rand.Rand) string {
	return pick(rng, "", "x", "12", "1.5", "true", `\u0041\n`, "2024-05-01T10:20:30Z", "2024-05-01T10:20:30.123456789+02:00", "2024-05-01", "2024-05-01t10:20:30z", "127.0.0.1")
}

func randomBinary(rng *rand.Rand) string { return pick(rng, "", "AQ==", "AQI=", "AQID", "AQIDBA==") }

// attribute writes a typed value that mostly suits t.
func attribute(rng *rand.Rand, t reflect.Type, depth int) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	list := func(n int, of func() string) string {
		var parts []string
		for range rng.IntN(n) {
			parts = append(parts, of())
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	quoted := func(of func(*rand.Rand) string) func() string {
		return func() string { return `"` + of(rng) + `"` }
	}
	if rng.IntN(12) == 0 {
		return pick(rng, `{"NULL":true}`, `{"NULL":false}`)
	}
	kind := t.Kind()
	if depth > 0 && rng.IntN(8) == 0 {
		kind = reflect.Interface
	}
	elem := t
	switch t.Kind() {
	case reflect.Slice, reflect.Array, reflect.Map:
		elem = t.Elem()
	}
	switch kind {
	case reflect.String:
		return `{"S":"` + randomString(rng) + `"}`
	case reflect.Bool:
		return pick(rng, `{"BOOL":true}`, `{"BOOL":false}`)
	case reflect.Slice, reflect.Array:
		switch {
		case elem.Kind() == reflect.Uint8 && rng.IntN(3) > 0:
			return `{"B":"` + randomBinary(rng) + `"}`
		case elem.Kind() == reflect.String && rng.IntN(2) == 0:
			return `{"SS":` + list(4, quoted(randomString)) + `}`
		case elem.Kind() != reflect.Struct && elem.Kind() != reflect.String && rng.IntN(2) == 0:
			return `{"NS":` + list(4, quoted(randomNumber)) + `}`
		case elem.Kind() == reflect.Slice && elem.Elem().Kind() == reflect.Uint8 && rng.IntN(2) == 0:
			return `{"BS":` + list(4, quoted(randomBinary)) + `}`
		}
		return `{"L":` + list(4, func() string { return attribute(rng, elem, depth-1) }) + `}`
	case reflect.Map, reflect.Struct:
		if t.ConvertibleTo(reflect.TypeFor[time.Time]()) {
			return pick(rng, `{"S":"`+randomString(rng)+`"}`, `{"S":"2024-05-01T10:20:30Z"}`, `{"N":"1714558830"}`, `{"N":"`+randomNumber(rng)+`"}`)
		}
		return `{"M":` + attributes(rng, t, depth) + `}`
	case reflect.Interface:
		anything := reflect.TypeFor[any]()
		switch rng.IntN(10) {
		case 0:
			return `{"S":"` + randomString(rng) + `"}`
		case 1:
			return `{"N":"` + randomNumber(rng) + `"}`
		case 2:
			return `{"B":"` + randomBinary(rng) + `"}`
		case 3:
			return pick(rng, `{"BOOL":true}`, `{"BOOL":false}`)
		case 4:
			return `{"SS":` + list(3, quoted(randomString)) + `}`
		case 5:
			return `{"NS":` + list(3, quoted(randomNumber)) + `}`
		case 6:
			return `{"BS":` + list(3, quoted(randomBinary)) + `}`
		case 7:
			if depth > 0 {
				return `{"L":` + list(4, func() string { return attribute(rng, anything, depth-1) }) + `}`
			}
		case 8:
			if depth > 0 {
				return `{"M":` + attributes(rng, reflect.TypeFor[map[string]any](), depth-1) + `}`
			}
		}
		return `{"S":"z"}`
	}
	if rng.IntN(6) == 0 {
		return `{"S":"` + randomString(rng) + `"}` // for the tag option string
	}
	return `{"N":"` + randomNumber(rng) + `"}`
}

// attributes writes an attribute map that mostly suits t. No two of its names
// differ in case alone, since which of them the SDK takes is left to chance.
func attributes(rng *rand.Rand, t reflect.Type, depth int) string {
	var parts []string
	seen := map[string]bool{}
	add := func(name string, t reflect.Type) {
		if fold := strings.ToLower(name); !seen[fold] {
			seen[fold] = true
			parts = append(parts, fmt.Sprintf("%q:%s", name, attribute(rng, t, depth-1)))
		}
	}
	if t.Kind() == reflect.Struct {
		for _, f := range reflect.VisibleFields(t) {
			name, _, _ := strings.Cut(f.Tag.Get("dynamodbav"), ",")
			if name == "" {
				name = f.Name
			}
			switch rng.IntN(5) {
			case 0:
			case 1:
				add(strings.ToLower(name), f.Type)
			case 2:
				add(strings.ToUpper(name), f.Type)
			default:
				add(name, f.Type)
			}
		}
	} else {
		elem := reflect.TypeFor[any]()
		if t.Kind() == reflect.Map {
			elem = t.Elem()
		}
		for range rng.IntN(3) {
			add(attrNames[rng.IntN(len(attrNames))], elem)
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

var timeOfMap = regexp.MustCompile(`into (time.Time|item_test.stamp): it is of type M$`)

// TestDecodeRandomTypesAgainstSDK decodes random items into random types.
func TestDecodeRandomTypesAgainstSDK(t *testing.T) {
	fine, refused := 0, 0
	for seed := range uint64(5_000) {
		rng := rand.New(rand.NewPCG(seed, 11))
		typ := randomStruct(rng, 3)
		in := attributes(rng, typ, 3)
		it := parse(t, in)
		got, want := reflect.New(typ), reflect.New(typ)
		err := it.Decode(got.Interface())
		sdkErr := decodeSDK(it, want.Interface())
		switch {
		case sdkErr == nil && err != nil && timeOfMap.MatchString(err.Error()): // the SDK takes time.Time for a struct without fields
		case (err == nil) != (sdkErr == nil):
			t.Fatalf("seed %d: %s into %s:\nerror     %v\nthe SDK's %v", seed, in, typ, err, sdkErr)
		case err != nil:
			refused++
		case !reflect.DeepEqual(got.Interface(), want.Interface()):
			t.Fatalf("seed %d: %s into %s\nis       %+v\nthe SDK: %+v", seed, in, typ, got, want)
		default:
			fine++
		}
	}
	if fine < 1500 || refused < 500 {
		t.Errorf("only %d items were decoded and %d refused", fine, refused)
	}
}

// decodeSDK decodes by the SDK, which panics where a slice's array is too
// short for a B.
func decodeSDK(it item.Item, into any) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return attributevalue.UnmarshalMap(sdkitem.Map(it), into)
}
