/// <reference path="./.sst/platform/config.d.ts" />

// Sluice as a Lambda function on the stream of a table, by SST.
//
//   make lambda CONFIG=sluice.yaml    # makes deploy/lambda/build
//   cd deploy/lambda/sst
//   npm install sst
//   npx sst deploy --stage production

// What sluice lambda filters | jq '[.Filters[].Pattern | fromjson]' prints: what no
// route takes need not cost an invocation.
const filters: Record<string, unknown>[] = [];

export default $config({
  app() {
    return { name: "sluice", home: "aws", removal: "retain", providers: { aws: "7.20.0" } };
  },
  async run() {
    const table = new sst.aws.Dynamo("Orders", {
      fields: { pk: "string" },
      primaryIndex: { hashKey: "pk" },
      stream: "new-and-old-images",
    });

    const kept = { messageRetentionSeconds: 1209600, sqsManagedSseEnabled: true };

    // The queue of sluice.yaml, by its name.
    const jobs = new aws.sqs.Queue("Jobs", { name: "jobs", ...kept });

    // Positions of the batches that were given up; not their records. They are in the
    // stream for 24 hours after the change.
    const givenUp = new aws.sqs.Queue("GivenUp", kept);

    const subscriber = table.subscribe(
      "Sluice",
      {
        bundle: "../build",
        handler: "bootstrap",
        runtime: "provided.al2023",
        architecture: "arm64",
        memory: "512 MB",
        timeout: "60 seconds",
        environment: { SLUICE_CONFIG: "sluice.yaml" },
        logging: { format: "json", retention: "1 month" },
        // sst dev would put a function of its own in its place.
        dev: false,
        // SST adds those to read the stream. link would grant more than these.
        permissions: [
          { actions: ["sqs:SendMessage"], resources: [givenUp.arn] },
          // What routes send. deploy/iam has what further sinks need.
          { actions: ["sqs:SendMessage", "sqs:GetQueueUrl", "sqs:GetQueueAttributes"], resources: [jobs.arn] },
        ],
      },
      {
        filters: filters.length > 0 ? filters : undefined,
        transform: {
          eventSourceMapping: {
            // Without it the answer is not read, and records that failed are lost.
            functionResponseTypes: ["ReportBatchItemFailures"],
            // LATEST would lose changes made while AWS makes the mapping.
            startingPosition: "TRIM_HORIZON",
            batchSize: 100,
            maximumBatchingWindowInSeconds: 1,
            parallelizationFactor: 1,
            bisectBatchOnFunctionError: true,
            // -1, the default, lets one bad record hold up its shard for a day.
            maximumRetryAttempts: 10,
            // 20 of the 24 hours: the stream still has the records of a batch that Lambda gave up.
            maximumRecordAgeInSeconds: 72000,
            destinationConfig: { onFailure: { destinationArn: givenUp.arn } },
          },
        },
      },
    );
    return { givenUp: givenUp.url, function: subscriber.nodes.function.name };
  },
});
