package daemon

import (
	"sync"

	"github.com/sluicehq/sluice/sources/poller"
)

// openShards counts the shards of each table that are not settled to their end, whoever
// reads them.
type openShards struct {
	mu       sync.Mutex
	byStream map[[2]string]int // of a table and an ARN
}

// counted makes h also report to o.
func (o *openShards) counted(h poller.Hooks) poller.Hooks {
	next := h.Lineage
	h.Lineage = func(l poller.Lineage) {
		o.mu.Lock()
		if o.byStream == nil {
			o.byStream = make(map[[2]string]int)
		}
		stream := [2]string{l.Table, l.StreamARN}
		if o.byStream[stream] = l.Reading + l.Waiting + l.Halted; o.byStream[stream] == 0 {
			delete(o.byStream, stream)
		}
		o.mu.Unlock()
		next(l)
	}
	return h
}

func (o *openShards) byTable() map[string]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	tables := make(map[string]int)
	for stream, n := range o.byStream {
		tables[stream[0]] += n
	}
	return tables
}
