package run

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"

	"github.com/sluicehq/sluice"
)

// gaps are what a poller could not read.
type gaps interface {
	Gaps() []sluice.Gap
	AcknowledgeGaps(ctx context.Context, gaps ...sluice.Gap) error
}

// acknowledge answers a request with the gaps that are open, and says that
// somebody has seen them. Only this machine may ask for it, and no page in a
// browser: whoever reads metrics from elsewhere cannot hide a loss.
func acknowledge(p gaps, logger *slog.Logger) http.Handler {
	return http.NewCrossOriginProtection().Handler(onMachine("gaps are acknowledged", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		open := p.Gaps()
		if err := p.AcknowledgeGaps(r.Context(), open...); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		for _, g := range open {
			logger.Info("gap acknowledged", "gap", g.String(), "stream", g.StreamARN, "found", g.Found)
			fmt.Fprintln(w, g)
		}
		fmt.Fprintf(w, "gaps acknowledged: %d\n", len(open))
	})))
}

// howTo is added to why a daemon that listens on address is not ready while it
// has gaps.
func howTo(reasons []string, p gaps, address net.Addr) []string {
	if len(p.Gaps()) == 0 {
		return reasons
	}
	tcp, _ := address.(*net.TCPAddr)
	switch {
	case tcp == nil, !tcp.IP.IsLoopback() && !tcp.IP.IsUnspecified():
		return append(reasons, "to acknowledge the gaps, start the daemon with --listen on a loopback address")
	case tcp.IP.IsUnspecified():
		address = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: tcp.Port}
	}
	return append(reasons, fmt.Sprintf("to acknowledge the gaps, on the daemon's machine: curl -X POST http://%s/gaps/acknowledge", address))
}
