package item_test

import (
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"net/netip"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"

	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/item/sdkitem"
)

type named string
type namedBytes []byte
type stamp time.Time

type inner struct {
	Promoted string
	Shadowed string
	Deep     int `dynamodbav:"deep_int"`
}

type other struct {
	Shadowed  string
	Ambiguous int
}

type third struct{ Ambiguous int }

type Exported struct{ FromPointer string }

type node1 struct {
	Name  string
	Next  *node1
	Kids  []node1
	ByKey map[string]*node1
}

type all struct {
	S        string
	Named    named
	Tagged   string `dynamodbav:"other_name,omitempty"`
	Ignored  string `dynamodbav:"-"`
	hidden   string //nolint:unused // decoding passes over it
	I        int
	I8       int8
	U        uint
	U16      uint16
	F        float64
	F32      float32
	AsText   int     `dynamodbav:",string"`
	AsTextF  float32 `dynamodbav:"asTextF,string,omitempty"`
	Bool     bool
	Ptr      *string
	PtrPtr   **int
	Number   attributevalue.Number
	Bytes    []byte
	NamedB   namedBytes
	Arr      [3]byte
	Strs     []string
	Ints     []int
	IntArr   [2]int
	Floats   []float64 `dynamodbav:",numberset"`
	Set      []string  `dynamodbav:",stringset"`
	BinSet   [][]byte  `dynamodbav:",binaryset"`
	Times    []time.Time
	Time     time.Time
	Unix     time.Time `dynamodbav:",unixtime"`
	Stamp    stamp     `dynamodbav:",unixtime"`
	TimePtr  *time.Time
	Map      map[string]int
	IntMap   map[int]string
	BoolMap  map[bool]string
	NamedMap map[named]any
	AddrMap  map[netip.Addr]string
	Struct   inner
	StructP  *inner
	Structs  []inner
	Any      any
	Anys     []any
	Node     *node1
	inner
	*Exported
	other
	third
	Mixed string `dynamodbav:"MiXeD"`
}

var decodings = []string{
	`{}`,
	`{"S":{"S":"x"},"Named":{"S":"y"},"other_name":{"S":"z"},"Ignored":{"S":"no"},"hidden":{"S":"no"},"Unknown":{"M":{"a":{"S":"b"}}}}`,
	`{"\u017f":{"S":"long s folds to s"},"\u212aids":{"S":"x"}}`,
	`{"s":{"S":"folded"},"NAMED":{"S":"folded"},"Other_Name":{"S":"folded"},"mixed":{"S":"folded"}}`,
	`{"S":{"N":"1.50"},"Number":{"N":"123456789012345678901234567890"},"Named":{"N":"7"}}`,
	`{"I":{"N":"-12"},"I8":{"N":"-128"},"U":{"N":"12"},"U16":{"N":"65535"},"F":{"N":"1.5E3"},"F32":{"N":"0.25"}}`,
	`{"I":{"N":"9223372036854775808"}}`, `{"I8":{"N":"128"}}`, `{"U":{"N":"-1"}}`, `{"U16":{"N":"65536"}}`, `{"F32":{"N":"1E39"}}`,
	`{"I":{"N":"1.0"}}`, `{"I":{"N":"1E2"}}`, `{"I":{"S":"1"}}`, `{"F":{"S":"1"}}`, `{"I":{"BOOL":true}}`,
	`{"AsText":{"S":"12"},"asTextF":{"S":"1.5"}}`, `{"AsText":{"N":"12"}}`, `{"AsText":{"S":"x"}}`,
	`{"Bool":{"BOOL":true}}`, `{"Bool":{"S":"true"}}`, `{"Bool":{"N":"1"}}`,
	`{"Ptr":{"S":"x"},"PtrPtr":{"N":"5"}}`, `{"Ptr":{"NULL":true},"PtrPtr":{"NULL":true},"S":{"NULL":true},"Map":{"NULL":true},"Any":{"NULL":true},"Time":{"NULL":true},"Struct":{"NULL":true},"StructP":{"NULL":true},"Ints":{"NULL":true}}`,
	`{"Bytes":{"B":"AP9//w=="},"NamedB":{"B":"AQI="},"Arr":{"B":"AQID"}}`, `{"Bytes":{"B":""}}`, `{"Bytes":{"S":"x"}}`, `{"S":{"B":"AQI="}}`,
	`{"Bytes":{"L":[{"N":"1"},{"N":"255"}]},"Arr":{"L":[{"N":"7"}]}}`, `{"Bytes":{"L":[{"N":"256"}]}}`,
	`{"Strs":{"L":[{"S":"a"},{"S":"b"}]},"Ints":{"L":[{"N":"1"},{"N":"2"}]},"IntArr":{"L":[{"N":"1"},{"N":"2"},{"N":"3"}]}}`,
	`{"Strs":{"SS":["a","b"]},"Ints":{"NS":["1","2"]},"Floats":{"NS":["1","2.5"]},"Set":{"SS":["x"]},"BinSet":{"BS":["AQ==","Ag=="]},"IntArr":{"NS":["9"]}}`,
	`{"Strs":{"NS":["1","2"]}}`, `{"Ints":{"SS":["1"]}}`, `{"Ints":{"L":[{"N":"1"},{"S":"x"}]}}`, `{"Ints":{"M":{}}}`, `{"Ints":{"N":"1"}}`,
	`{"Ints":{"NS":[]},"Map":{"M":{}},"BinSet":{"BS":[]}}`, `{"BinSet":{"L":[{"B":"AQ=="}]}}`, `{"Strs":{"BS":["AQ=="]}}`,
	`{"Time":{"S":"2024-05-01T10:20:30.5Z"},"TimePtr":{"S":"2024-05-01T10:20:30+02:00"},"Stamp":{"S":"2024-05-01T10:20:30Z"}}`,
	`{"Time":{"N":"1714558830"},"Unix":{"N":"1714558830"},"Stamp":{"N":"1714558830"},"TimePtr":{"N":"0"}}`,
	`{"Time":{"S":"yesterday"}}`, `{"Time":{"N":"1.5"}}`, `{"Unix":{"N":"1.5"}}`, `{"Time":{"BOOL":true}}`,
	`{"Times":{"SS":["2024-05-01T10:20:30Z"]}}`, `{"Times":{"NS":["1714558830"]}}`,
	`{"Map":{"M":{"a":{"N":"1"},"b":{"N":"2"}}},"IntMap":{"M":{"1":{"S":"x"},"-2":{"S":"y"}}},"BoolMap":{"M":{"true":{"S":"t"}}},"NamedMap":{"M":{"n":{"L":[]}}},"AddrMap":{"M":{"127.0.0.1":{"S":"lo"}}}}`,
	`{"IntMap":{"M":{"x":{"S":"y"}}}}`, `{"BoolMap":{"M":{"maybe":{"S":"y"}}}}`, `{"AddrMap":{"M":{"x":{"S":"y"}}}}`, `{"Map":{"M":{"a":{"S":"x"}}}}`, `{"Map":{"S":"x"}}`,
	`{"Struct":{"M":{"Promoted":{"S":"a"},"deep_int":{"N":"3"}}},"StructP":{"M":{"Shadowed":{"S":"b"}}},"Structs":{"L":[{"M":{"deep_int":{"N":"1"}}},{"M":{}}]}}`,
	`{"Struct":{"S":"x"}}`, `{"Structs":{"L":[{"S":"x"}]}}`,
	`{"Promoted":{"S":"a"},"deep_int":{"N":"3"},"Shadowed":{"S":"?"},"Ambiguous":{"N":"1"},"FromPointer":{"S":"p"}}`,
	`{"Any":{"S":"x"},"Anys":{"L":[{"N":"1.5"},{"S":"x"},{"NULL":true},{"BOOL":true},{"B":"AQ=="},{"L":[{"N":"1"}]},{"M":{"a":{"N":"1"},"z":{"NULL":true}}},{"SS":["a"]},{"NS":["1"]},{"BS":["AQ=="]}]}}`,
	`{"Any":{"M":{"a":{"L":[]},"b":{"M":{}}}}}`, `{"Any":{"N":"1E125"}}`,
	`{"Node":{"M":{"Name":{"S":"a"},"Next":{"M":{"Name":{"S":"b"},"Next":{"NULL":true}}},"Kids":{"L":[{"M":{"Name":{"S":"k"},"Kids":{"L":[{"M":{}}]}}}]},"ByKey":{"M":{"x":{"M":{"Name":{"S":"y"}}},"n":{"NULL":true}}}}}}`,
}

func TestDecodeAgainstSDK(t *testing.T) {
	check := func(in string, into func() any) {
		t.Helper()
		it := parse(t, in)
		got, want := into(), into()
		err := it.Decode(got)
		sdkErr := attributevalue.UnmarshalMap(sdkitem.Map(it), want)
		if (err == nil) != (sdkErr == nil) {
			t.Errorf("%s into %T:\nerror     %v\nthe SDK's %v", in, got, err, sdkErr)
		} else if err == nil && !reflect.DeepEqual(got, want) {
			t.Errorf("%s\nis       %+v\nthe SDK: %+v", in, got, want)
		}
	}
	for _, in := range decodings {
		check(in, func() any { return new(all) })
		check(in, func() any { return new(map[string]any) })
		check(in, func() any { return new(any) })
		check(in, func() any { p := new(all); return &p })
		check(in, func() any {
			s := "old"
			return &all{S: "old", Ptr: &s, IntArr: [2]int{9, 9}, Map: map[string]int{"old": 1}}
		})
	}
	check(`{"a":{"S":"x"},"b":{"S":"y"}}`, func() any { return new(map[string]string) })
	check(`{"a":{"S":"x"},"b":{"N":"1"}}`, func() any { return new(map[named]named) })
	check(`{"a":{"S":"x"}}`, func() any { return new(string) })
	check(`{"a":{"S":"x"}}`, func() any { return new([]string) })
	check(`{"a":{"S":"x"}}`, func() any { return new(map[complex64]string) })
	check(`{"GRÖSSE":{"N":"5"},"B":{"N":"7"}}`, func() any {
		return new(struct {
			N int `dynamodbav:"Größe"`
			B int `dynamodbav:"b"`
		})
	})
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 5))
		check(recordtest.Random(rng, 3).Variant(rng), func() any { return new(map[string]any) })
	}
}

// Here the SDK leaves the old elements, and fails on the old value.
func TestDecodeReplaces(t *testing.T) {
	v := all{Ints: []int{9, 9}, Any: 5, Anys: []any{1}}
	err := parse(t, `{"Ints":{"L":[]},"Any":{"S":"new"},"Anys":{"L":[{"NULL":true}]}}`).Decode(&v)
	if err != nil || len(v.Ints) != 0 || v.Any != "new" || v.Anys[0] != nil {
		t.Errorf("%v %v %v: %v", v.Ints, v.Any, v.Anys, err)
	}
}

func TestDecodeExactNameWins(t *testing.T) {
	for _, in := range []string{
		`{"S":{"S":"exact"},"s":{"BOOL":true}}`,
		`{"S":{"S":"exact"},"s":{"S":"folded"}}`,
		`{"s":{"S":"folded"},"S":{"S":"exact"}}`,
	} {
		var v struct{ S string }
		if err := parse(t, in).Decode(&v); err != nil || v.S != "exact" {
			t.Errorf("%s: %q %v", in, v.S, err)
		}
	}
}

type custom struct{ seen string }

func (c *custom) UnmarshalAttribute(v item.Value) error {
	if v.Is("bad") {
		return errors.New("a bad value")
	}
	c.seen = v.Kind().String() + ":" + v.Str()
	return nil
}

func TestDecodeUnmarshaler(t *testing.T) {
	var v struct {
		A, N custom
		P, Z *custom
		L    []custom
		M    map[string]custom
		Set  []custom
	}
	in := `{"A":{"S":"x"},"N":{"NULL":true},"P":{"N":"1"},"Z":{"NULL":true},"L":{"L":[{"BOOL":true},{"S":"y"}]},"M":{"M":{"k":{"S":"z"}}},"Set":{"SS":["s"]}}`
	if err := parse(t, in).Decode(&v); err != nil {
		t.Fatal(err)
	}
	if v.A.seen != "S:x" || v.N.seen != "NULL:" || v.P.seen != "N:1" || v.Z != nil || v.L[0].seen != "BOOL:" || v.L[1].seen != "S:y" || v.M["k"].seen != "S:z" || v.Set[0].seen != "S:s" {
		t.Errorf("decoded %+v", v)
	}
	err := parse(t, `{"L":{"L":[{"S":"x"},{"S":"bad"}]}}`).Decode(&v)
	var e *item.DecodeError
	if !errors.As(err, &e) || e.Path != "L.1" || e.Err.Error() != "a bad value" {
		t.Errorf("error %v", err)
	}
}

// What the SDK refuses goes to the type's own text or binary form.
func TestDecodeEncodingUnmarshalers(t *testing.T) {
	var v struct {
		Addr netip.Addr
		URL  *url.URL
		Big  big.Int
		BinU url.URL
		ID   id
	}
	if err := parse(t, `{"Addr":{"S":"10.0.0.1"},"Big":{"S":"123456789012345678901234567890"},"BinU":{"B":"aHR0cDovL2EvYg=="},"ID":{"S":"0102"}}`).Decode(&v); err != nil {
		t.Fatal(err)
	}
	if v.Addr.String() != "10.0.0.1" || v.Big.String() != "123456789012345678901234567890" || v.BinU.String() != "http://a/b" || v.ID != (id{1, 2}) {
		t.Errorf("decoded %+v", v)
	}
	var e *item.DecodeError
	if err := parse(t, `{"Addr":{"S":"nowhere"}}`).Decode(&v); !errors.As(err, &e) || e.Path != "Addr" {
		t.Errorf("error %v", err)
	}
}

type id [2]byte

func (i *id) UnmarshalText(text []byte) error {
	_, err := fmt.Sscanf(string(text), "%02x%02x", &i[0], &i[1])
	return err
}

func TestDecodeSDKUnmarshaler(t *testing.T) {
	var v struct{ At attributevalue.UnixTime }
	it := parse(t, `{"At":{"N":"1714558830"}}`)
	err := it.Decode(&v)
	if err == nil || !strings.Contains(err.Error(), "sdkitem") || !strings.Contains(err.Error(), `"At"`) {
		t.Errorf("error %v", err)
	}
	if err := sdkitem.Decode(it, &v); err != nil || time.Time(v.At).Unix() != 1714558830 {
		t.Errorf("sdkitem: %v %v", v.At, err)
	}
}

func TestDecodeErrors(t *testing.T) {
	it := parse(t, `{"a":{"M":{"l":{"L":[{"N":"1"},{"M":{"n":{"N":"300"}}}]}}},"arr":{"B":"AQI="},"x":{"S":"y"}}`)
	for _, tt := range []struct {
		into any
		path string
		msg  string
	}{
		{nil, "", "non-nil pointer"},
		{all{}, "", "non-nil pointer"},
		{(*all)(nil), "", "non-nil pointer"},
		{new(int), "", "type M"},
		{new(struct {
			A struct{ L []int } `dynamodbav:"a"`
		}), "a.l.1", "type M"},
		{new(struct {
			A struct{ L []any } `dynamodbav:"a"`
			X chan int          `dynamodbav:"x"`
		}), "x", "type S"},
		{new(struct {
			Arr [3]byte `dynamodbav:"arr"`
		}), "arr", "2 bytes"},
		{new(struct {
			A map[string][]map[string]uint8 `dynamodbav:"a"`
		}), "a.l.0", "type N"},
		{new(struct{ X fmt.Stringer }), "x", "type S"},
	} {
		err := it.Decode(tt.into)
		var e *item.DecodeError
		if !errors.As(err, &e) || e.Path != tt.path || !strings.Contains(err.Error(), tt.msg) {
			t.Errorf("into %T: error %v, wanted %q at %q", tt.into, err, tt.msg, tt.path)
		}
	}
	var absent item.Item
	if err := absent.Decode(new(all)); err == nil || !strings.Contains(err.Error(), "no item") {
		t.Errorf("absent: %v", err)
	}
}

// Errors are logged, an item's data must not be.
func TestDecodeErrorsHoldNoData(t *testing.T) {
	it := parse(t, `{"Text":{"S":"123-45-6789"},"Number":{"N":"1234567.89"}}`)
	type asString struct {
		Text float32 `dynamodbav:",string"`
	}
	type anyAsString struct {
		Text any `dynamodbav:",string"`
	}
	for _, into := range []any{
		new(struct{ Text int }), new(asString), new(anyAsString), new(struct{ Text time.Time }),
		new(struct{ Number uint8 }), new(struct{ Number time.Time }), new(struct{ Number bool }),
	} {
		err := it.Decode(into)
		if err == nil || strings.Contains(err.Error(), "45") {
			t.Errorf("into %T: %v", into, err)
		}
	}
}

// An attribute that fills a field of its very name fills no other.
func TestDecodeExactNameIsTakenOnce(t *testing.T) {
	var v struct {
		Lower string `dynamodbav:"id"`
		Upper string `dynamodbav:"ID"`
	}
	if err := parse(t, `{"ID":{"S":"x"},"more":{"S":""}}`).Decode(&v); err != nil || v.Lower != "" || v.Upper != "x" {
		t.Errorf("%+v %v", v, err)
	}
}

func TestDecodeEmbeddedUnexportedPointer(t *testing.T) {
	var v struct{ *inner }
	if err := parse(t, `{"Promoted":{"S":"x"}}`).Decode(&v); err == nil || !strings.Contains(err.Error(), "unexported") {
		t.Errorf("error %v", err)
	}
}

// Plans of types that contain each other are made by several goroutines at once.
func TestDecodeConcurrently(t *testing.T) {
	type b struct{ A any }
	type a struct {
		B    *b
		Self *a
		L    []a
		M    map[string]*a
	}
	it := parse(t, `{"Self":{"M":{"L":{"L":[{"M":{"M":{"M":{"x":{"M":{"B":{"M":{"A":{"S":"deep"}}}}}}}}}]}}}}`)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			var v a
			if err := it.Decode(&v); err != nil || v.Self.L[0].M["x"].B.A != "deep" {
				t.Errorf("%+v %v", v, err)
			}
		})
	}
	wg.Wait()
}

func BenchmarkDecode(b *testing.B) {
	it := parse(b, `{"PK":{"S":"a271244"},"SK":{"S":"search"},"status":{"S":"active"},"order":{"N":"12"},"enabled":{"BOOL":true},"tags":{"SS":["a","b"]},"method":{"M":{"type":{"S":"email"}}}}`)
	type row struct {
		PK, SK, Status string
		Order          int
		Enabled        bool
		Tags           []string
		Method         map[string]string
	}
	b.Run("item", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var r row
			if err := it.Decode(&r); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("sdk", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var r row
			if err := sdkitem.Decode(it, &r); err != nil {
				b.Fatal(err)
			}
		}
	})
}
