package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/internal/accounts"
	"github.com/sluicehq/sluice/internal/kcl"
	"github.com/sluicehq/sluice/internal/statestore"
	"github.com/sluicehq/sluice/sources/poller"
	"github.com/sluicehq/sluice/state"
)

// kclImport is an import of a lease table.
type kclImport struct {
	file           stateFile
	leases, stream string
	latest         string
	wait           time.Duration
	dry, asJSON    bool
}

func stateImportCommand(c *cli) *cobra.Command {
	im := kclImport{file: stateFile{c: c}}
	cmd := &cobra.Command{
		Use:   "import-kcl LEASETABLE",
		Short: "Take over the positions of a KCL application",
		Long: `Take over the positions of an application of the Kinesis Client Library (2 or 3) with
the DynamoDB Streams adapter. Stop its workers first: the command reads the lease table
twice, and refuses when a lease was written meanwhile. It changes nothing there.

KCL stores no position for a shard at LATEST that had no record yet: --latest says where
Sluice begins it.

The command needs dynamodb:Scan on the lease table, dynamodb:DescribeStream, and for
--stream TABLE dynamodb:DescribeTable.`,
		Example: `  sluice state import-kcl my-kcl-app --stream orders --dry-run
  sluice state import-kcl my-kcl-app --stream orders --state dynamodb:sluice-state`,
		Args:              exactlyOne("one lease table: by default it has the name of the KCL application"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			im.leases = args[0]
			if !slices.Contains([]string{"", poller.TrimHorizon, poller.Latest}, im.latest) {
				return usage("--latest: %q is not one of %s, %s", im.latest, poller.TrimHorizon, poller.Latest)
			}
			return im.run(cmd.Context())
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&im.stream, "stream", "", "`table` or stream ARN of the leases, if their keys do not name the stream")
	fs.StringVar(&im.latest, "latest", "", "begin shards without a position at TRIM_HORIZON or LATEST")
	fs.DurationVar(&im.wait, "wait", 20*time.Second, "time between the two reads: over a third of KCL's failoverTimeMillis (10 s)")
	fs.BoolVar(&im.dry, "dry-run", false, "say what would be imported")
	fs.BoolVar(&im.asJSON, "json", false, "print JSON, one object for each stream")
	im.file.addFlags(fs)
	return cmd
}

// importedStream is the result for one stream.
type importedStream struct {
	Application string `json:"application"`
	Stream      string `json:"stream"`
	Start       string `json:"start"`
	Leases      int    `json:"leases"`
	DryRun      bool   `json:"dryRun,omitempty"`
}

func (im *kclImport) run(ctx context.Context) (err error) {
	c := im.file.c
	cfg, err := c.loadMaybe()
	if err != nil {
		return err
	}
	services, _, err := c.accounts(ctx, cfg)
	if err != nil {
		return err
	}
	db := dynamodb.NewFromConfig(services(accounts.State))
	leases, err := im.read(ctx, db)
	if err != nil {
		return err
	}
	if len(leases) == 0 {
		return fmt.Errorf("lease table %s has no lease", im.leases)
	}
	app := c.applicationName(im.file.application, cfg)
	from, streams, err := im.plan(ctx, dynamodb.NewFromConfig(services("dynamodb")), dynamodbstreams.NewFromConfig(services("dynamodb")), app, leases)
	if err != nil {
		return err
	}
	target, err := c.openTarget(ctx, cfg, c.statePath(im.file.path, cfg), im.dry)
	if err != nil {
		return err
	}
	if target != nil {
		defer func() { err = errors.Join(err, target.Close()) }()
	}
	if _, err := statestore.Copy(ctx, from, target, app, true, func() {}); err != nil {
		return err // before the wait
	}
	if err := im.quiet(ctx, db, leases); err != nil {
		return err
	}
	shown := newCounting(c.stderr, "shards")
	_, err = statestore.Copy(ctx, from, target, app, im.dry, shown.one)
	shown.end()
	if err != nil {
		return err
	}
	for _, s := range streams {
		verb := map[bool]string{false: "imported", true: "would import"}[im.dry]
		if err := c.answer(im.asJSON, s, "%s %s of %s for the application %s; other shards begin at %s\n",
			verb, plural(s.Leases, "lease", "leases"), s.Stream, app, s.Start); err != nil {
			return err
		}
	}
	return nil
}

// plan returns what the leases become.
func (im *kclImport) plan(ctx context.Context, db *dynamodb.Client, api kcl.Describer, app string, leases []kcl.Lease) (*state.Memory, []importedStream, error) {
	m, all := state.NewMemory(), []importedStream(nil)
	byStream := make(map[string][]kcl.Lease)
	for _, l := range leases {
		byStream[l.Stream] = append(byStream[l.Stream], l)
	}
	if one, ok := byStream[""]; ok {
		arn, err := im.streamARN(ctx, db)
		if err != nil {
			return nil, nil, err
		}
		delete(byStream, "")
		byStream[arn] = append(byStream[arn], one...)
	}
	for _, arn := range slices.Sorted(maps.Keys(byStream)) {
		parents, err := kcl.Shards(ctx, api, arn)
		if err != nil {
			return nil, nil, err
		}
		gone := 0
		for _, l := range byStream[arn] {
			if _, ok := parents[l.ShardID]; !ok {
				gone++
			}
		}
		switch {
		case gone == len(byStream[arn]):
			return nil, nil, fmt.Errorf("stream %s has none of the shards of the leases: name the right stream by --stream; after 24 hours the leases are of no use", arn)
		case gone > 0:
			fmt.Fprintf(im.file.c.stderr, "%s of %s are of shards that the stream has trimmed\n", plural(gone, "lease", "leases"), arn)
		}
		start, err := kcl.StartFor(byStream[arn], im.latest, time.Now().Add(-latestMargin))
		if err == nil {
			err = kcl.Add(ctx, m, state.Stream{Application: app, ARN: arn}, byStream[arn], parents, start)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("stream %s: %w", arn, err)
		}
		all = append(all, importedStream{app, arn, start.Position, len(byStream[arn]), im.dry})
	}
	return m, all, nil
}

func (im *kclImport) read(ctx context.Context, db *dynamodb.Client) ([]kcl.Lease, error) {
	leases, err := kcl.Read(ctx, db, im.leases)
	if err != nil {
		return nil, fmt.Errorf("lease table %s: %w", im.leases, err)
	}
	return leases, nil
}

// quiet returns an error if a worker writes a lease within the wait.
func (im *kclImport) quiet(ctx context.Context, db *dynamodb.Client, before []kcl.Lease) error {
	fmt.Fprintf(im.file.c.stderr, "%s; waiting %v to see that no worker writes one\n", plural(len(before), "lease", "leases"), im.wait)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(im.wait):
	}
	after, err := im.read(ctx, db)
	if err != nil {
		return err
	}
	if owners := kcl.Living(before, after); len(owners) > 0 {
		return fmt.Errorf("KCL workers run, and write leases: %s: stop them first", strings.Join(owners, ", "))
	}
	return nil
}

// streamARN returns the stream that --stream names.
func (im *kclImport) streamARN(ctx context.Context, db *dynamodb.Client) (string, error) {
	switch {
	case im.stream == "":
		return "", usage("--stream: the leases do not name their stream: name the table, such as --stream orders, or the ARN of the stream")
	case strings.HasPrefix(im.stream, "arn:"):
		if (poller.Stream{ARN: im.stream}).TableName() == "" {
			return "", usage("--stream: %q is not the ARN of a stream", im.stream)
		}
		return im.stream, nil
	}
	out, err := db.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &im.stream})
	if err != nil {
		return "", fmt.Errorf("--stream: table %s: %w", im.stream, err)
	}
	arn := aws.ToString(out.Table.LatestStreamArn)
	if arn == "" {
		return "", fmt.Errorf("--stream: table %s has no stream", im.stream)
	}
	return arn, nil
}
