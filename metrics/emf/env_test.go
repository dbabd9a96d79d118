package emf

import (
	"reflect"
	"strings"
	"testing"
)

func TestFromEnv(t *testing.T) {
	for _, tt := range []struct {
		env  map[string]string
		o    Options
		on   bool
		want string // of the error
	}{
		{nil, Options{}, true, ""},
		{map[string]string{"SLUICE_EMF": "on", "SLUICE_EMF_NAMESPACE": "Shop"}, Options{Namespace: "Shop"}, true, ""},
		{map[string]string{"SLUICE_EMF_DIMENSIONS": "Service=searches, Stage=a=b"}, Options{Dimensions: map[string]string{"Service": "searches", "Stage": "a=b"}}, true, ""},
		{map[string]string{"SLUICE_EMF": "off", "SLUICE_EMF_DIMENSIONS": "nonsense"}, Options{}, false, ""},
		{map[string]string{"SLUICE_EMF": "yes"}, Options{}, false, `SLUICE_EMF is "yes": want on or off`},
		{map[string]string{"SLUICE_EMF_DIMENSIONS": "Service"}, Options{}, false, `"Service": want NAME=VALUE`},
		{map[string]string{"SLUICE_EMF_DIMENSIONS": "Stage=a, Stage=b"}, Options{}, false, "Stage is there twice"},
		{map[string]string{"SLUICE_EMF_DIMENSIONS": "Route=x"}, Options{}, false, "taken"},
		{map[string]string{"SLUICE_EMF_NAMESPACE": ":x"}, Options{}, false, "SLUICE_EMF_NAMESPACE"},
	} {
		o, on, err := FromEnv(func(name string) string { return tt.env[name] })
		if !reflect.DeepEqual(o, tt.o) || on != tt.on {
			t.Errorf("%v: %+v, %v; want %+v, %v", tt.env, o, on, tt.o, tt.on)
		}
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%v: %v, want %q", tt.env, err, tt.want)
		}
	}
}
