package streamtest

import "reflect"

// deepCopy returns v with copies of its slices and maps, so that it does not
// change when the original's memory is reused. It clones values with a method
// Clone that returns their own type. Other pointers, interfaces and unexported
// fields are shared.
func deepCopy[T any](v T) T {
	rv := reflect.ValueOf(&v).Elem()
	rv.Set(copied(rv))
	return v
}

func copied(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice:
		if v.IsNil() {
			return v
		}
	case reflect.Interface:
		return v
	}
	if clone := v.MethodByName("Clone"); clone.IsValid() {
		if t := clone.Type(); t.NumIn() == 0 && t.NumOut() == 1 && t.Out(0) == v.Type() {
			return clone.Call(nil)[0]
		}
	}
	c := reflect.New(v.Type()).Elem()
	switch v.Kind() {
	case reflect.Slice:
		c.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		reflect.Copy(c, v)
		if v.Type().Elem().Kind() != reflect.Uint8 {
			for i := range c.Len() {
				c.Index(i).Set(copied(c.Index(i)))
			}
		}
	case reflect.Map:
		c.Set(reflect.MakeMapWithSize(v.Type(), v.Len()))
		for it := v.MapRange(); it.Next(); {
			c.SetMapIndex(it.Key(), copied(it.Value()))
		}
	case reflect.Struct:
		c.Set(v)
		for i := range c.NumField() {
			if f := c.Field(i); f.CanSet() {
				f.Set(copied(f))
			}
		}
	default:
		return v
	}
	return c
}
