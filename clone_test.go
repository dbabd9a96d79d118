package sluice_test

import (
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/sluicehq/sluice"
)

func TestClone(t *testing.T) {
	data := append([]byte{}, fixture(t, "lambda.json")...)
	page, err := sluice.DecodeEvent(data)
	if err != nil {
		t.Fatal(err)
	}
	for i := range page.Records {
		r := &page.Records[i]
		before := summary(r)
		c := r.Clone()
		raw := string(r.Raw())
		if summary(c) != before || string(c.Raw()) != raw {
			t.Errorf("the clone is %s\nof %s", summary(c), before)
		}
		if shared := sharedMemory(reflect.ValueOf(r).Elem(), reflect.ValueOf(c).Elem(), "Record"); shared != "" {
			t.Errorf("the clone shares %s", shared)
		}
		page.Records[i] = *c
	}
	want := []string{summary(&page.Records[0]), summary(&page.Records[1])}
	clear(data)
	checkPage(t, page, want...)

	bad := sluice.DecodeRecord([]byte(`{"eventID":"x"}`))
	if c := bad.Clone(); c.Err() == nil || string(c.Raw()) != `{"eventID":"x"}` {
		t.Errorf("clone of a bad record: %v %s", c.Err(), c.Raw())
	}
}

// sharedMemory names a string or slice that two values have in common.
func sharedMemory(a, b reflect.Value, path string) string {
	switch a.Kind() {
	case reflect.Struct:
		for i := range a.NumField() {
			if a.Type() == reflect.TypeFor[time.Time]() {
				continue
			}
			if s := sharedMemory(a.Field(i), b.Field(i), path+"."+a.Type().Field(i).Name); s != "" {
				return s
			}
		}
	case reflect.Slice:
		if a.Len() > 0 && a.UnsafePointer() == b.UnsafePointer() {
			return path
		}
	case reflect.String:
		// What records of a stream have in common is no part of a page.
		common := strings.HasSuffix(path, ".EventName") || strings.HasSuffix(path, ".Table") || strings.HasSuffix(path, ".StreamARN") ||
			strings.HasSuffix(path, ".Region") || strings.HasSuffix(path, ".ViewType")
		if a.Len() > 0 && !common && unsafe.StringData(a.String()) == unsafe.StringData(b.String()) {
			return path
		}
	}
	return ""
}
