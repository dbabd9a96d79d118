package poller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/sluicehq/sluice/internal/awsclient"
	"github.com/sluicehq/sluice/internal/awserror"
	"github.com/sluicehq/sluice/internal/views"
	"github.com/sluicehq/sluice/sources/poller/internal/lineage"
	"github.com/sluicehq/sluice/state"
)

const (
	describeTable  = "dynamodb:DescribeTable"
	describeStream = "dynamodb:DescribeStream"

	startRetry    = 500 * time.Millisecond
	startCalls    = 16 // made at a time for LATEST iterators
	disableStream = "Disable the stream: aws dynamodb update-table --table-name %s --stream-specification StreamEnabled=false. "
	enableStream  = "Enable one: aws dynamodb update-table --table-name %s --stream-specification StreamEnabled=true,StreamViewType=NEW_AND_OLD_IMAGES"
)

// prepared is what Run needs of the service before it stores anything.
type prepared struct {
	following []*follower
	first     []*stream // that are read at once
}

// Prepare does what Run begins with: it finds the streams and checks them, and stores
// nothing. Its error is what Run would return.
func (p *Poller) Prepare(ctx context.Context) (err error) {
	p.prepared, err = p.prepare(ctx)
	return err
}

// open finds the streams and begins the first of each table.
func (p *Poller) open(ctx context.Context) ([]*follower, error) {
	if p.prepared == nil {
		if err := p.Prepare(ctx); err != nil {
			return nil, err
		}
	}
	for _, s := range p.prepared.first {
		begun := s.start != (state.Start{})
		if err := s.join(ctx, true); err != nil && !(begun && busy(err)) { // else it joins later
			return nil, err
		}
	}
	return p.prepared.following, nil
}

// prepare reports every mistake in a list of tables together.
func (p *Poller) prepare(ctx context.Context) (*prepared, error) {
	if err := p.credentials(ctx); err != nil {
		return nil, err
	}
	known, err := p.storedStreams(ctx)
	if err != nil {
		return nil, err
	}
	var following []*follower
	var first []*stream
	var errs []error
	names := make(map[string]Stream) // by ARN
	for _, name := range p.o.Streams {
		f, err := p.find(ctx, name, known)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, arn := range f.arns() {
			if other, ok := names[arn]; ok {
				errs = append(errs, &StreamError{Stream: name, Err: fmt.Errorf("it is the stream of %v", other), Do: "Name it once"})
			}
			names[arn] = name
		}
		if g := f.newest(); g.first {
			first = append(first, g.stream)
		}
		following = append(following, f)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if err := p.storedStarts(ctx, first); err != nil {
		return nil, err
	}
	return &prepared{following, first}, nil
}

// credentials fails early if there are no credentials.
func (p *Poller) credentials(ctx context.Context) error {
	const do = "give them by AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or the role of the machine; DynamoDB Local takes any"
	if p.cfg.Region == "" {
		return fmt.Errorf("poller: %w", awsclient.ErrNoRegion)
	}
	if p.cfg.Credentials == nil {
		return errors.New("poller: no AWS credentials: " + do)
	}
	ctx, cancel := context.WithTimeout(ctx, p.o.CallTimeout)
	defer cancel()
	switch _, err := p.cfg.Credentials.Retrieve(ctx); {
	case err == nil:
	case errors.As(err, new(*awserror.CredentialsError)): // of a role or profile, with its own advice
		if !awserror.Of(err).Passes() { // else the calls of the start try again
			return fmt.Errorf("poller: %w", err)
		}
	default:
		return fmt.Errorf("poller: no AWS credentials: %w: %s", err, do)
	}
	return nil
}

// storedStreams returns the ARNs of the streams that the application has read.
func (p *Poller) storedStreams(ctx context.Context) ([]string, error) {
	streams, err := p.store.streams(ctx, p.o.Application)
	if err != nil {
		return nil, fmt.Errorf("poller: read which streams are stored: %w", err)
	}
	var arns []string
	for _, s := range streams {
		arns = append(arns, s.ARN)
	}
	return arns, nil
}

// newStream returns a stream without any call.
func (p *Poller) newStream(name Stream, arn string) *stream {
	s := &stream{
		p: p, name: name, table: tableOf(arn), id: state.Stream{Application: p.o.Application, ARN: arn},
		forest: lineage.New(), wake: make(chan struct{}, 1), due: make(map[string]*gauge),
	}
	s.api = &ownAPI{Client: p.api, stream: s}
	s.discovery = newDiscovery(s.api, arn, p.o.CallTimeout)
	s.discovery.clock, s.discovery.answered = &p.clock, s.heard
	s.discovery.failed = func(action string, err error, k kind, retryIn time.Duration) {
		s.troubled(err)
		p.failed(Shard{Table: s.table, StreamARN: arn}, action, err, k, retryIn)
	}
	return s
}

// try makes every call that reading a stream needs. A stream that was read before
// may start without a response of a busy service.
func (p *Poller) try(ctx context.Context, g *generation, known []string) error {
	err := p.tryAll(ctx, g.stream, slices.Contains(known, g.id.ARN))
	g.first = err == nil
	if busy(err) && slices.Contains(known, g.id.ARN) {
		return nil
	}
	return err
}

func (p *Poller) tryAll(ctx context.Context, s *stream, known bool) error {
	arn := s.id.ARN
	var d *types.StreamDescription
	if err := p.first(ctx, s.name, describeStream, arn, known, func(ctx context.Context) error {
		out, err := p.api.DescribeStream(ctx, &dynamodbstreams.DescribeStreamInput{StreamArn: &arn})
		if err == nil {
			d = out.StreamDescription
		}
		return err
	}); err != nil {
		return err
	}
	if err := p.checkView(s.name, s.table, string(d.StreamViewType)); err != nil {
		return err
	}
	if len(d.Shards) == 0 {
		return nil
	}
	return p.tryShard(ctx, s.name, arn, aws.ToString(d.Shards[len(d.Shards)-1].ShardId))
}

var errNoStream = errors.New("the table has no stream")

// streamOf returns the ARN of the table's latest stream.
func (p *Poller) streamOf(ctx context.Context, name Stream, known bool) (arn string, err error) {
	err = p.first(ctx, name, describeTable, fmt.Sprintf("table %q", name.Table), known, func(ctx context.Context) error {
		arn, err = p.latestStream(ctx, name.Table)
		return err
	})
	if err == nil && arn == "" {
		err = &StreamError{Stream: name, Err: errNoStream, Do: fmt.Sprintf(enableStream, name.Table)}
	}
	return arn, err
}

// latestStream makes one call for the latest stream; arn is empty when the table
// has none.
func (p *Poller) latestStream(ctx context.Context, table string) (arn string, err error) {
	out, err := p.tables.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &table})
	switch {
	case err != nil:
		return "", err
	case out.Table == nil:
		return "", errors.New("the answer holds no table")
	}
	p.clock.heard(out.ResultMetadata)
	return aws.ToString(out.Table.LatestStreamArn), nil
}

// checkView refuses a stream whose records lack images that a route reads. The
// route would decide without seeing them.
func (p *Poller) checkView(name Stream, table, view string) error {
	have, err := views.Parse(view)
	if err != nil {
		return nil // an unknown view type; the records show what they hold
	}
	for _, r := range p.matcher.Routes() {
		if !have.Has(r.Needs) {
			return &StreamError{Stream: name,
				Err: fmt.Errorf("its view type is %s, but route %q needs %s", have, r.Name, r.Needs),
				Do:  "The view type of a stream cannot be changed. " + fmt.Sprintf(disableStream+enableStream, table, table)}
		}
	}
	return nil
}

// tryShard makes the two calls that reading needs, to find a missing permission at
// the start. The reader handles every other failure.
func (p *Poller) tryShard(ctx context.Context, name Stream, arn, shard string) error {
	action := getIterator
	first, end := context.WithTimeout(ctx, p.o.CallTimeout)
	defer end()
	out, err := p.api.GetShardIterator(first, &dynamodbstreams.GetShardIteratorInput{
		StreamArn: &arn, ShardId: &shard, ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
	})
	if err == nil {
		action = getRecords
		second, end := context.WithTimeout(ctx, p.o.CallTimeout)
		defer end()
		_, err = p.api.GetRecords(second, aws.ToString(out.ShardIterator), 1)
	}
	if classify(err) == refused {
		return refusal(name, action, arn, err)
	}
	return nil
}

// first makes a call of the start, and retries until StartTimeout if that may
// help. A known stream can start without a busy service: with many tables, retries
// would add up to many minutes.
func (p *Poller) first(ctx context.Context, name Stream, action, resource string, known bool, call func(context.Context) error) error {
	limit, cancel := context.WithTimeout(ctx, p.o.StartTimeout)
	defer cancel()
	var b backoff
	var last error // last error that names the cause, not the timeout
	for {
		one, cancel := context.WithTimeout(limit, p.o.CallTimeout)
		err := call(one)
		cancel()
		if err == nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		if last == nil || limit.Err() == nil {
			last = err
		}
		switch classify(err) {
		case refused:
			return refusal(name, action, resource, err)
		case notFound:
			if action == describeTable {
				return &StreamError{Stream: name, Err: awsclient.NoTable(p.cfg, err)}
			}
			return &StreamError{Stream: name, Action: action, Err: err, Do: "There is no such stream " + awsclient.Place(p.cfg) + ": is it spelt as in the service, and has the table not got a newer one?"}
		case invalid:
			return &StreamError{Stream: name, Action: action, Err: err,
				Do: fmt.Sprintf("Is it spelt as in the service? It was asked %s", awsclient.Place(p.cfg))}
		}
		if sleep(limit, min(b.next(transient), startRetry)) != nil || known && busy(err) && b.failures > childrenTries {
			return &StreamError{Stream: name, Action: action,
				Err: fmt.Errorf("no good answer within %v: tried %d times, at last: %w", p.o.StartTimeout, b.failures, last),
				Do:  "Is the service running and reachable from here, and is the endpoint" + p.endpoint() + " right? " + p.endpointFrom()}
		}
	}
}

func (p *Poller) endpoint() string {
	if p.cfg.BaseEndpoint == nil {
		return ""
	}
	return " " + *p.cfg.BaseEndpoint
}

func (p *Poller) endpointFrom() string {
	if p.cfg.BaseEndpoint == nil {
		return fmt.Sprintf("It follows from the Region (%s)", p.cfg.Region)
	}
	if p.o.EndpointName != "" {
		return "It was set by " + p.o.EndpointName
	}
	return "It was set by the program's options or by AWS_ENDPOINT_URL"
}

func refusal(name Stream, action, resource string, err error) error {
	return &StreamError{Stream: name, Action: action + " on " + resource, Err: err,
		Do: "Allow the action on that resource, or use other credentials"}
}

// storedStarts refuses streams without a stored or given start.
func (p *Poller) storedStarts(ctx context.Context, streams []*stream) error {
	var missing []string
	for _, s := range streams {
		start, err := p.store.start(ctx, s.id, state.Start{})
		switch {
		case errors.Is(err, state.ErrNoStart):
			missing = append(missing, s.name.String())
		case err != nil:
			return fmt.Errorf("poller: %v: read the stored start: %w", s.name, err)
		default:
			s.start = start
		}
	}
	if len(missing) > 0 && p.o.Start == "" {
		return &noStartError{Streams: missing, Name: p.o.StartName, Err: state.ErrNoStart}
	}
	return nil
}
