package meadowlark

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice/examples/internal/kit"
)

// Create makes the table with its index and its stream if it is not there, and
// returns when it can be written to.
func Create(ctx context.Context, cfg aws.Config, table string) error {
	in := kit.Table(table, true, "pk", "sk")
	in.AttributeDefinitions = append(in.AttributeDefinitions, kit.Texts("securityStudentId", "securityEdOrgId")...)
	in.GlobalSecondaryIndexes = []types.GlobalSecondaryIndex{{
		IndexName:  aws.String("SecurityStudentEdOrgGSI"),
		KeySchema:  kit.Key("securityStudentId", "securityEdOrgId"),
		Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
	}}
	return kit.Create(ctx, dynamodb.NewFromConfig(cfg), in)
}
