package tracing

import (
	"strings"
	"testing"
)

func TestBadSettingsAreNamed(t *testing.T) {
	for setting, want := range map[string]string{
		"OTEL_BSP_MAX_QUEUE_SIZE=-1":                        "above 0",
		"OTEL_BSP_MAX_EXPORT_BATCH_SIZE=many":               "above 0",
		"OTEL_EXPORTER_OTLP_ENDPOINT=localhost:4318":        "http://localhost:4318",
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=u:secret@x":     "http://localhost:4318",
		"OTEL_TRACES_SAMPLER=bogus":                         "parentbased_traceidratio",
		"OTEL_TRACES_SAMPLER=traceidratio 1.5":              "from 0 to 1",
		"OTEL_TRACES_SAMPLER=parentbased_traceidratio NaN":  "from 0 to 1",
		"OTEL_TRACES_SAMPLER=parentbased_traceidratio 0.25": "",
		"OTEL_EXPORTER_OTLP_ENDPOINT=https://x.example":     "",
		"OTEL_BSP_MAX_QUEUE_SIZE=1":                         "",
	} {
		name, value, _ := strings.Cut(setting, "=")
		value, arg, _ := strings.Cut(value, " ")
		err := checkEnv(func(v string) string { return map[string]string{name: value, "OTEL_TRACES_SAMPLER_ARG": arg}[v] })
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", setting, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "OTEL_") || strings.Contains(err.Error(), "secret")):
			t.Errorf("%s: %v", setting, err)
		}
	}
	t.Setenv("OTEL_TRACES_SAMPLER", "bogus")
	if _, err := Start(t.Context(), Options{}); err == nil {
		t.Error("Start takes any sampler")
	}
}
