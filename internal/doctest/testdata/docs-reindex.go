package page

import (
	"encoding/json"
	"github.com/sluicehq/sluice/sinks/opensearch/indices"
)

var (
	cluster *indices.Cluster
	body    json.RawMessage
)
