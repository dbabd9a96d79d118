package item

import (
	"iter"
	"reflect"
	"strconv"
)

// anyPlan fills interfaces. It fills a non-nil pointer in an interface in place.
func anyPlan(opts tagOptions) plan {
	return withNull(func(v Value, rv reflect.Value) error {
		if e := rv.Elem(); e.Kind() == reflect.Pointer && !e.IsNil() && e.Elem() != rv {
			return planOf(e.Type().Elem(), opts)(v, e.Elem())
		}
		if rv.NumMethod() > 0 {
			return mismatch(v, rv)
		}
		if holdsNumber(v, opts) {
			v.kind = N
		}
		x, err := v.any()
		if err != nil {
			return err
		}
		rv.Set(reflect.ValueOf(x))
		return nil
	})
}

// any returns v as the simplest Go value; nil for a NULL.
func (v Value) any() (any, error) {
	switch v.kind {
	case S:
		return v.Str(), nil
	case N:
		return v.float()
	case B:
		return v.Bytes(), nil
	case BOOL:
		return v.Bool(), nil
	case M:
		m := map[string]any{}
		for c := v.Map().cursor(); c.next(); {
			name := text(c.name)
			x, err := c.value.any()
			if err != nil {
				return nil, within(name, err)
			}
			m[name] = x
		}
		return m, nil
	case L:
		return collect(v.List(), Value.any)
	case SS:
		return collect(v.Set(), func(e Value) (string, error) { return e.Str(), nil })
	case NS:
		return collect(v.Set(), Value.float)
	case BS:
		return collect(v.Set(), func(e Value) ([]byte, error) { return e.Bytes(), nil })
	}
	return nil, nil
}

func collect[T any](elements iter.Seq[Value], value func(Value) (T, error)) ([]T, error) {
	l := []T{}
	for e := range elements {
		x, err := value(e)
		if err != nil {
			return nil, within(strconv.Itoa(len(l)), err)
		}
		l = append(l, x)
	}
	return l, nil
}

func (v Value) float() (float64, error) {
	f, err := strconv.ParseFloat(string(textBytes(v.raw)), 64)
	if err != nil {
		return 0, &DecodeError{Type: reflect.TypeFor[float64](), Err: withoutText(err)}
	}
	return f, nil
}
