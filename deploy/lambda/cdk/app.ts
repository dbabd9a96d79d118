// Sluice as a Lambda function on the stream of a table, by the AWS CDK.
//
//   make lambda CONFIG=sluice.yaml    # makes deploy/lambda/build
//   cd deploy/lambda/cdk
//   npm install aws-cdk aws-cdk-lib constructs tsx
//   npx cdk deploy --app "npx tsx app.ts"
import * as path from "node:path";
import { App, Duration, RemovalPolicy, Stack } from "aws-cdk-lib";
import * as dynamodb from "aws-cdk-lib/aws-dynamodb";
import * as iam from "aws-cdk-lib/aws-iam";
import * as lambda from "aws-cdk-lib/aws-lambda";
import { DynamoEventSource } from "aws-cdk-lib/aws-lambda-event-sources";
import * as logs from "aws-cdk-lib/aws-logs";
import * as sqs from "aws-cdk-lib/aws-sqs";

// What sluice lambda filters | jq '[.Filters[].Pattern]' prints: what no route takes
// need not cost an invocation.
const filters: string[] = [];

const stack = new Stack(new App(), "Sluice", { description: "Sluice on the stream of a table" });

const table = new dynamodb.Table(stack, "Orders", {
  partitionKey: { name: "pk", type: dynamodb.AttributeType.STRING },
  billingMode: dynamodb.BillingMode.PAY_PER_REQUEST,
  stream: dynamodb.StreamViewType.NEW_AND_OLD_IMAGES,
});

const kept = { retentionPeriod: Duration.days(14), encryption: sqs.QueueEncryption.SQS_MANAGED };

// The queue of sluice.yaml, by its name.
const jobs = new sqs.Queue(stack, "Jobs", { queueName: "jobs", ...kept });

// Positions of the batches that were given up; not their records. They are in the
// stream for 24 hours after the change.
const givenUp = new sqs.Queue(stack, "GivenUp", kept);

const logGroup = new logs.LogGroup(stack, "Log", {
  retention: logs.RetentionDays.ONE_MONTH,
  removalPolicy: RemovalPolicy.RETAIN,
});

const role = new iam.Role(stack, "Role", { assumedBy: new iam.ServicePrincipal("lambda.amazonaws.com") });
logGroup.grantWrite(role);
givenUp.grant(role, "sqs:SendMessage");
// What routes send. deploy/iam has what further sinks need.
jobs.grant(role, "sqs:SendMessage", "sqs:GetQueueUrl", "sqs:GetQueueAttributes");

const sluice = new lambda.Function(stack, "Function", {
  description: "Reacts to the changes of a table",
  code: lambda.Code.fromAsset(path.join(__dirname, "../build")),
  handler: "bootstrap",
  runtime: lambda.Runtime.PROVIDED_AL2023,
  architecture: lambda.Architecture.ARM_64,
  memorySize: 512,
  timeout: Duration.seconds(60),
  environment: { SLUICE_CONFIG: "sluice.yaml" },
  loggingFormat: lambda.LoggingFormat.JSON,
  logGroup,
  role,
});

sluice.addEventSource(new DynamoEventSource(table, {
  // Without it the answer is not read, and records that failed are lost.
  reportBatchItemFailures: true,
  // LATEST would lose changes made while AWS makes the mapping.
  startingPosition: lambda.StartingPosition.TRIM_HORIZON,
  batchSize: 100,
  maxBatchingWindow: Duration.seconds(1),
  parallelizationFactor: 1,
  bisectBatchOnError: true,
  // -1, the default, lets one bad record hold up its shard for a day.
  retryAttempts: 10,
  // 20 of the 24 hours: the stream still has the records of a batch that Lambda gave up.
  maxRecordAge: Duration.hours(20),
  // SqsDlq would grant more than sending.
  onFailure: { bind: () => ({ destination: givenUp.queueArn }) },
  filters: filters.length > 0 ? filters.map((pattern) => ({ pattern })) : undefined,
}));
