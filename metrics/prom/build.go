package prom

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicehq/sluice/internal/buildversion"
)

// newBuildInfo registers the series with the build of the program.
func newBuildInfo(reg prometheus.Registerer) {
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "sluice_build_info", Help: "1, with the versions.",
	}, []string{"version", "goversion"})
	info.WithLabelValues(buildversion.Get(), runtime.Version()).Set(1)
	reg.MustRegister(info)
}
