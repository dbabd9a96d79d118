package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"golang.org/x/sync/errgroup"
)

// resource is a table, queue or domain, by its name.
type resource struct{ kind, name string }

func (r resource) String() string { return r.kind + " " + r.name }

var errNotOurs = errors.New("it was not made by the suite, and is left alone")

// errorKind is the name of an error: its header may go on after a colon.
func errorKind(header string) string {
	kind, _, _ := strings.Cut(header, ":")
	return kind
}

// remove deletes the resources that have the tag of this run, or of any with run
// empty, and returns what went wrong. One that is gone already is no error.
func (a *account) remove(ctx context.Context, all []resource, run string) error {
	remove := map[string]func(context.Context, string, string) error{"table": a.removeTable, "queue": a.removeQueue, "domain": a.removeDomain}
	errs := make([]error, len(all))
	var jobs errgroup.Group
	jobs.SetLimit(8) // AWS limits how many tables change at a time
	for i, r := range all {
		jobs.Go(func() error {
			if err := remove[r.kind](ctx, r.name, run); err != nil {
				errs[i] = fmt.Errorf("%s: %w", r, err)
			}
			return nil
		})
	}
	_ = jobs.Wait()
	return errors.Join(errs...)
}

// removeTable waits until the table is gone. One that is being made or changed
// cannot be deleted yet.
func (a *account) removeTable(ctx context.Context, name, run string) error {
	asked, looks := false, 0
	return a.wait(ctx, func() (bool, error) {
		status, err := a.tableStatus(ctx, name)
		if err != nil || status == "" {
			return true, err
		}
		if asked || status != ddbtypes.TableStatusActive {
			return false, nil
		}
		if !a.local {
			ours, err := a.owns(ctx, resource{"table", name}, run)
			if err != nil {
				return false, err
			}
			// A new tag may take a while to show.
			if looks++; !ours && looks < 15 {
				return false, nil
			}
			if !ours {
				return false, errNotOurs
			}
		}
		_, err = a.tables.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &name})
		if errors.As(err, new(*ddbtypes.ResourceInUseException)) || errors.As(err, new(*ddbtypes.ResourceNotFoundException)) {
			return false, nil
		}
		asked = err == nil
		return false, err
	})
}

func (a *account) removeQueue(ctx context.Context, name, run string) error {
	ours, err := a.owns(ctx, resource{"queue", name}, run)
	if err == nil && !ours {
		return errNotOurs
	}
	var q *sqs.GetQueueUrlOutput
	if err == nil {
		q, err = a.queues.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &name})
	}
	if err == nil {
		_, err = a.queues.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: q.QueueUrl})
	}
	if errors.As(err, new(*sqstypes.QueueDoesNotExist)) {
		return nil
	}
	return err
}

// owns reports whether a resource has the suite's tag, of this run or, with run
// empty, of any.
func (a *account) owns(ctx context.Context, r resource, run string) (bool, error) {
	tags, err := a.tags(ctx, r)
	value, ok := tags[tagKey]
	return ok && (run == "" || value == run), err
}

func (a *account) tags(ctx context.Context, r resource) (map[string]string, error) {
	tags := map[string]string{}
	switch r.kind {
	case "table":
		out, err := a.tables.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &r.name})
		if err != nil {
			return nil, err
		}
		found, err := a.tables.ListTagsOfResource(ctx, &dynamodb.ListTagsOfResourceInput{ResourceArn: out.Table.TableArn})
		if err != nil {
			return nil, err
		}
		for _, t := range found.Tags {
			tags[aws.ToString(t.Key)] = aws.ToString(t.Value)
		}
		return tags, nil
	case "queue":
		q, err := a.queues.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &r.name})
		if err != nil {
			return nil, err
		}
		found, err := a.queues.ListQueueTags(ctx, &sqs.ListQueueTagsInput{QueueUrl: q.QueueUrl})
		if err != nil {
			return nil, err
		}
		return found.Tags, nil
	}
	d, err := a.describeDomain(ctx, r.name)
	if err != nil || d.ARN == "" {
		return nil, err
	}
	var found struct{ TagList []struct{ Key, Value string } }
	err = a.domainCall(ctx, http.MethodGet, "/2021-01-01/tags?arn="+url.QueryEscape(d.ARN), nil, &found)
	for _, t := range found.TagList {
		tags[t.Key] = t.Value
	}
	return tags, err
}

// named returns what there is under a prefix.
func (a *account) named(ctx context.Context, prefix string) ([]resource, error) {
	var all []resource
	for pages := dynamodb.NewListTablesPaginator(a.tables, &dynamodb.ListTablesInput{}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("tables: %w", err)
		}
		for _, name := range page.TableNames {
			if strings.HasPrefix(name, prefix+"-") {
				all = append(all, resource{"table", name})
			}
		}
	}
	in := &sqs.ListQueuesInput{QueueNamePrefix: aws.String(prefix + "-"), MaxResults: aws.Int32(1000)}
	for pages := sqs.NewListQueuesPaginator(a.queues, in); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("queues: %w", err)
		}
		for _, url := range page.QueueUrls {
			if name := path.Base(url); strings.HasPrefix(name, prefix+"-") {
				all = append(all, resource{"queue", name})
			}
		}
	}
	if a.urls.domains == "" {
		return all, nil // there is no local server for domains
	}
	d, err := a.describeDomain(ctx, domainName(prefix))
	if err != nil {
		return nil, fmt.Errorf("domain: %w", err)
	}
	if d.ARN != "" {
		all = append(all, resource{"domain", domainName(prefix)})
	}
	return all, nil
}

// owned parts resources by whether the suite has made them.
func (a *account) owned(ctx context.Context, all []resource) (ours, others []resource, err error) {
	for _, r := range all {
		is := a.local && r.kind == "table" // whose server has no tags
		var err error
		if !is {
			is, err = a.owns(ctx, r, "")
		}
		switch {
		case errors.As(err, new(*ddbtypes.ResourceNotFoundException)), errors.As(err, new(*sqstypes.QueueDoesNotExist)): // it went meanwhile
		case err != nil:
			return nil, nil, fmt.Errorf("%s: %w", r, err)
		case is:
			ours = append(ours, r)
		default:
			others = append(others, r)
		}
	}
	return ours, others, nil
}
