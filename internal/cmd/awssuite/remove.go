package main

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
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
	var errs []error
	var mu sync.Mutex
	var jobs sync.WaitGroup
	slots := make(chan struct{}, 8) // AWS limits how many tables change at a time
	for _, r := range all {
		jobs.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			var err error
			switch r.kind {
			case "table":
				err = a.removeTable(ctx, r.name, run)
			case "queue":
				err = a.removeQueue(ctx, r.name, run)
			case "domain":
				err = a.removeDomain(ctx, r.name, run)
			}
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, fmt.Errorf("%s: %w", r, err))
			}
		})
	}
	jobs.Wait()
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
			ours, err := a.ownsTable(ctx, name, run)
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
		var busy *ddbtypes.ResourceInUseException
		var gone *ddbtypes.ResourceNotFoundException
		if errors.As(err, &busy) || errors.As(err, &gone) {
			return false, nil
		}
		asked = err == nil
		return false, err
	})
}

func (a *account) removeQueue(ctx context.Context, name, run string) error {
	c := a.queues
	var gone *sqstypes.QueueDoesNotExist
	ignoreGone := func(err error) error {
		if errors.As(err, &gone) {
			return nil
		}
		return err
	}
	q, err := c.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &name})
	if err != nil {
		return ignoreGone(err)
	}
	ours, err := a.ownsQueue(ctx, *q.QueueUrl, run)
	if err != nil {
		return ignoreGone(err)
	}
	if !ours {
		return errNotOurs
	}
	_, err = c.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: q.QueueUrl})
	return ignoreGone(err)
}

func (a *account) ownsQueue(ctx context.Context, url, run string) (bool, error) {
	tags, err := a.queues.ListQueueTags(ctx, &sqs.ListQueueTagsInput{QueueUrl: &url})
	if err != nil {
		return false, err
	}
	value, ok := tags.Tags[tagKey]
	return ok && (run == "" || value == run), nil
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
		var is bool
		var err error
		switch r.kind {
		case "table":
			is = a.local
			if !a.local {
				is, err = a.ownsTable(ctx, r.name, "")
			}
		case "queue":
			var q *sqs.GetQueueUrlOutput
			if q, err = a.queues.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &r.name}); err == nil {
				is, err = a.ownsQueue(ctx, *q.QueueUrl, "")
			}
		case "domain":
			var d domainStatus
			if d, err = a.describeDomain(ctx, r.name); err == nil && d.ARN != "" {
				is, err = a.ownsDomain(ctx, d.ARN, "")
			}
		}
		var noTable *ddbtypes.ResourceNotFoundException
		var noQueue *sqstypes.QueueDoesNotExist
		switch {
		case errors.As(err, &noTable), errors.As(err, &noQueue): // it went meanwhile
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
