package page

import (
	"encoding/json"

	"github.com/sluicehq/sluice/sinks/opensearch"
)

var (
	indices *opensearch.Indices
	body    json.RawMessage
)
