package item

import (
	"encoding"
	"errors"
	"reflect"
	"strconv"
	"sync"
	"time"
)

// planKey identifies a plan: a type with the options of a field's tag.
type planKey struct {
	t    reflect.Type
	opts tagOptions
}

var plans sync.Map // of planKey to plan

// planOf returns the plan of a type. It first stores a placeholder, through which
// the plan of a recursive type finds itself.
func planOf(t reflect.Type, opts tagOptions) plan {
	key := planKey{t, opts}
	if p, ok := plans.Load(key); ok {
		return p.(plan)
	}
	var made plan
	var wait sync.WaitGroup
	wait.Add(1)
	standIn := plan(func(v Value, rv reflect.Value) error {
		wait.Wait()
		return made(v, rv)
	})
	if p, loaded := plans.LoadOrStore(key, standIn); loaded {
		return p.(plan)
	}
	made = makePlan(t, opts)
	wait.Done()
	plans.Store(key, made)
	return made
}

func makePlan(t reflect.Type, opts tagOptions) plan {
	if t.Kind() == reflect.Pointer {
		return pointerPlan(t, opts)
	}
	if t.Kind() == reflect.Interface {
		return anyPlan(opts)
	}
	if ptr := reflect.PointerTo(t); ptr.Implements(unmarshalerType) {
		return unmarshal
	} else if _, ok := ptr.MethodByName(sdkMethod); ok {
		return refuseSDK
	}
	switch t.Kind() {
	case reflect.String:
		return withNull(stringPlan)
	case reflect.Bool:
		return withNull(withEncoding(t, boolPlan))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return withNull(numberPlan(t, opts, setInt))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return withNull(numberPlan(t, opts, setUint))
	case reflect.Float32, reflect.Float64:
		return withNull(numberPlan(t, opts, setFloat))
	case reflect.Slice, reflect.Array:
		return withNull(withEncoding(t, listPlan(t)))
	case reflect.Map:
		return withNull(withEncoding(t, mapPlan(t)))
	case reflect.Struct:
		if t.ConvertibleTo(timeType) {
			return withNull(timePlan(opts))
		}
		return withNull(withEncoding(t, structPlan(t)))
	}
	return withNull(withEncoding(t, mismatch))
}

func pointerPlan(t reflect.Type, opts tagOptions) plan {
	elem := planOf(t.Elem(), opts)
	return withNull(func(v Value, rv reflect.Value) error {
		if rv.IsNil() {
			rv.Set(reflect.New(t.Elem()))
		}
		return elem(v, rv.Elem())
	})
}

// stringPlan fills types of kind string, including numbers kept as text.
func stringPlan(v Value, rv reflect.Value) error {
	if v.kind != S && v.kind != N {
		return mismatch(v, rv)
	}
	rv.SetString(v.Str())
	return nil
}

func boolPlan(v Value, rv reflect.Value) error {
	if v.kind != BOOL {
		return mismatch(v, rv)
	}
	rv.SetBool(v.Bool())
	return nil
}

func numberPlan(t reflect.Type, opts tagOptions, set func(reflect.Value, string) error) plan {
	other := withEncoding(t, mismatch)
	return func(v Value, rv reflect.Value) error {
		if !holdsNumber(v, opts) {
			return other(v, rv)
		}
		return failed(rv, withoutText(set(rv, string(textBytes(v.raw)))))
	}
}

func holdsNumber(v Value, opts tagOptions) bool {
	return v.kind == N || v.kind == S && opts&asString != 0
}

// withoutText removes the number from a number's error. Errors are logged, and an
// item's data must not be.
func withoutText(err error) error {
	if e, ok := errors.AsType[*strconv.NumError](err); ok {
		return e.Err
	}
	return err
}

func setInt(rv reflect.Value, text string) error {
	n, err := strconv.ParseInt(text, 10, rv.Type().Bits())
	if err == nil {
		rv.SetInt(n)
	}
	return err
}

func setUint(rv reflect.Value, text string) error {
	n, err := strconv.ParseUint(text, 10, rv.Type().Bits())
	if err == nil {
		rv.SetUint(n)
	}
	return err
}

func setFloat(rv reflect.Value, text string) error {
	f, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil:
		return err
	case rv.OverflowFloat(f):
		return strconv.ErrRange
	}
	rv.SetFloat(f)
	return nil
}

func timePlan(opts tagOptions) plan {
	return func(v Value, rv reflect.Value) error {
		var t time.Time
		switch {
		case holdsNumber(v, opts):
			sec, err := strconv.ParseInt(string(textBytes(v.raw)), 10, 64)
			if err != nil {
				return failed(rv, withoutText(err))
			}
			t = time.Unix(sec, 0)
		case v.kind == S:
			var err error
			if t, err = time.Parse(time.RFC3339, v.Str()); err != nil {
				return failed(rv, errors.New("it is no RFC 3339 time"))
			}
		default:
			return mismatch(v, rv)
		}
		rv.Set(reflect.ValueOf(t).Convert(rv.Type()))
		return nil
	}
}

// listPlan fills slices and arrays. An array takes the elements that fit; binary
// must fit exactly.
func listPlan(t reflect.Type) plan {
	elem := planOf(t.Elem(), 0)
	isBytes := t.Elem().Kind() == reflect.Uint8
	return func(v Value, rv reflect.Value) error {
		switch {
		case v.kind == B && isBytes:
			return setBytes(v, rv)
		case v.kind != L && member(v.kind) == Invalid:
			return mismatch(v, rv)
		}
		n := v.Len()
		if t.Kind() == reflect.Slice {
			if rv.IsNil() || rv.Cap() < n {
				rv.Set(reflect.MakeSlice(t, n, n))
			}
			rv.SetLen(n)
		}
		i := 0
		for c := (elements{b: v.raw}); i < rv.Len() && c.next(); i++ {
			if err := elem(c.element(v.kind), rv.Index(i)); err != nil {
				return within(strconv.Itoa(i), err)
			}
		}
		return nil
	}
}

func setBytes(v Value, rv reflect.Value) error {
	data := v.Bytes()
	if rv.Kind() == reflect.Slice {
		rv.SetBytes(data)
		return nil
	}
	if len(data) != rv.Len() {
		return failed(rv, errors.New("it holds "+strconv.Itoa(len(data))+" bytes"))
	}
	for i, c := range data { // reflect.Copy needs element type byte itself
		rv.Index(i).SetUint(uint64(c))
	}
	return nil
}

func mapPlan(t reflect.Type) plan {
	elem := planOf(t.Elem(), 0)
	key := keyPlan(t.Key())
	return func(v Value, rv reflect.Value) error {
		switch {
		case v.kind != M:
			return mismatch(v, rv)
		case key == nil:
			return failed(rv, errors.New("a map's key must be a string, number, bool or encoding.TextUnmarshaler"))
		}
		if rv.IsNil() {
			rv.Set(reflect.MakeMap(t))
		}
		for c := v.Map().cursor(); c.next(); {
			name := text(c.name)
			k, e := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
			if err := key(name, k); err != nil {
				return within(name, failed(k, err))
			}
			if err := elem(c.value, e); err != nil {
				return within(name, err)
			}
			rv.SetMapIndex(k, e)
		}
		return nil
	}
}

// keyPlan returns a function that makes a map key of an attribute's name, or nil
// when t cannot be a key.
func keyPlan(t reflect.Type) func(name string, k reflect.Value) error {
	if reflect.PointerTo(t).Implements(textUnmarshalerType) {
		return func(name string, k reflect.Value) error {
			return k.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(name))
		}
	}
	switch t.Kind() {
	case reflect.String:
		return func(name string, k reflect.Value) error {
			k.SetString(name)
			return nil
		}
	case reflect.Bool:
		return func(name string, k reflect.Value) error {
			b, err := strconv.ParseBool(name)
			k.SetBool(b)
			return err
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return func(name string, k reflect.Value) error { return withoutText(setInt(k, name)) }
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return func(name string, k reflect.Value) error { return withoutText(setUint(k, name)) }
	case reflect.Float32, reflect.Float64:
		return func(name string, k reflect.Value) error { return withoutText(setFloat(k, name)) }
	}
	return nil
}
