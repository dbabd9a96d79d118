package tracing

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

var samplers = []string{"always_on", "always_off", "traceidratio", "parentbased_always_on", "parentbased_always_off", "parentbased_traceidratio"}

// checkEnv refuses values that OpenTelemetry's SDK passes over, or panics at. Variables
// may hold a password: an error does not repeat their values.
func checkEnv(env func(string) string) error {
	for _, name := range []string{"OTEL_BSP_MAX_QUEUE_SIZE", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE"} {
		if n, err := strconv.Atoi(env(name)); env(name) != "" && (err != nil || n <= 0) {
			return fmt.Errorf("%s: want a number above 0", name)
		}
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"} {
		u, err := url.Parse(env(name))
		if env(name) != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
			return fmt.Errorf("%s: want a URL with its scheme, such as http://localhost:4318", name)
		}
	}
	sampler := env("OTEL_TRACES_SAMPLER")
	if sampler != "" && !slices.Contains(samplers, sampler) {
		return fmt.Errorf("OTEL_TRACES_SAMPLER: want one of %s", strings.Join(samplers, ", "))
	}
	share, err := strconv.ParseFloat(env("OTEL_TRACES_SAMPLER_ARG"), 64)
	if strings.HasSuffix(sampler, "traceidratio") && env("OTEL_TRACES_SAMPLER_ARG") != "" && (err != nil || !(share >= 0 && share <= 1)) {
		return errors.New("OTEL_TRACES_SAMPLER_ARG: want a share from 0 to 1, such as 0.01")
	}
	return nil
}
