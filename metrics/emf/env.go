package emf

import (
	"fmt"
	"strings"
)

// FromEnv reads the options from environment variables. SLUICE_EMF is "on" (the
// default) or "off". SLUICE_EMF_NAMESPACE is the namespace. SLUICE_EMF_DIMENSIONS
// are the dimensions, such as Service=searches,Stage=prod.
func FromEnv(env func(name string) string) (o Options, on bool, err error) {
	switch v := env("SLUICE_EMF"); v {
	case "", "on":
	case "off":
		return Options{}, false, nil
	default:
		return Options{}, false, fmt.Errorf("SLUICE_EMF is %q: want on or off", v)
	}
	o.Namespace = env("SLUICE_EMF_NAMESPACE")
	if list := env("SLUICE_EMF_DIMENSIONS"); list != "" {
		o.Dimensions = map[string]string{}
		for one := range strings.SplitSeq(list, ",") {
			name, value, ok := strings.Cut(one, "=")
			if !ok {
				return Options{}, false, fmt.Errorf("SLUICE_EMF_DIMENSIONS is %q: want NAME=VALUE, several with commas between them", list)
			}
			name = strings.TrimSpace(name)
			if _, twice := o.Dimensions[name]; twice {
				return Options{}, false, fmt.Errorf("SLUICE_EMF_DIMENSIONS is %q: %s is there twice", list, name)
			}
			o.Dimensions[name] = strings.TrimSpace(value)
		}
	}
	if err := o.withDefaults().validate(); err != nil {
		return Options{}, false, fmt.Errorf("SLUICE_EMF_NAMESPACE, SLUICE_EMF_DIMENSIONS: %w", err)
	}
	return o, true, nil
}
