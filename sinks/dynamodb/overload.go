package dynamodb

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice"
)

// marked is sluice.Overloaded for an error of the SDK that is a refusal for load,
// or for no more than is provisioned; any other is as it was. See "Error handling
// with DynamoDB" and TransactionCanceledException in the API reference for the
// codes.
func marked(err error) error {
	load := classify(err) == throttled
	for _, r := range reasonsOf(err) {
		load = load || isOfLoad(&r)
	}
	if load {
		return sluice.Overloaded(err)
	}
	return err
}

// isOfLoad reports whether a transaction was cancelled for this write's share of
// the throughput.
func isOfLoad(r *types.CancellationReason) bool {
	return r.Code != nil && (*r.Code == "ProvisionedThroughputExceeded" || *r.Code == "ThrottlingError")
}
