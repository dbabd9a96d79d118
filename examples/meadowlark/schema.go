package meadowlark

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice/examples/internal/kit"
)

// Create makes the table with its index and its stream if it is not there, and
// returns when it can be written to.
func Create(ctx context.Context, cfg aws.Config, table string) error {
	return kit.Schemas{{Name: table, Keys: []string{"pk", "sk"}, Stream: true, Index: &types.GlobalSecondaryIndex{
		IndexName:  aws.String("SecurityStudentEdOrgGSI"),
		KeySchema:  kit.Key("securityStudentId", "securityEdOrgId"),
		Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
	}}}.Create(ctx, cfg, "")
}
