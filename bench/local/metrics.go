package local

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Series are values by name and labels, as /metrics writes them.
type Series map[string]float64

// Metrics asks the daemon that listens at address for its series.
func Metrics(ctx context.Context, address string) (Series, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	body, err := Do(req)
	if err != nil {
		return nil, err
	}
	return ParseSeries(string(body))
}

// ParseSeries reads the text of /metrics.
func ParseSeries(text string) (Series, error) {
	s := make(Series)
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		i := strings.LastIndexByte(line, ' ')
		if i < 0 {
			return nil, fmt.Errorf("metrics: %q has no value", line)
		}
		v, err := strconv.ParseFloat(line[i+1:], 64)
		if err != nil {
			return nil, fmt.Errorf("metrics: %q: %w", line, err)
		}
		s[line[:i]] = v
	}
	return s, nil
}
