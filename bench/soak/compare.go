//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sluicehq/sluice/bench/local"
	"github.com/sluicehq/sluice/effect/document"
)

const receivers = 4

// receive takes messages until ctx ends.
func (w *world) receive(ctx context.Context) error {
	for ctx.Err() == nil {
		out, err := w.queue.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &w.queueURL, MaxNumberOfMessages: 10, WaitTimeSeconds: 1})
		if err != nil {
			return err
		}
		if len(out.Messages) == 0 {
			continue
		}
		var del []types.DeleteMessageBatchRequestEntry
		for i, m := range out.Messages {
			text, err := readChange(*m.Body)
			if err != nil {
				return err
			}
			w.mail.add(text)
			del = append(del, types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: m.ReceiptHandle})
		}
		if _, err := w.queue.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: &w.queueURL, Entries: del}); err != nil {
			return err
		}
	}
	return nil
}

// compare compares the effects with the writes.
func (w *world) compare(ctx context.Context) (wrong []error, err error) {
	var all []thing
	var sent []string
	for _, s := range w.shares {
		all = append(all, s.items...)
		sent = append(sent, s.messages...)
	}
	w.mail.mu.Lock()
	missing, unknown, twice := compareMessages(sent, w.mail.got)
	fmt.Printf("soak messages_twice %d\n", twice)
	w.mail.mu.Unlock()
	wrong = append(wrong, tell("changes have no message", missing)...)
	wrong = append(wrong, tell("messages are of no change", unknown)...)

	refs := make([]document.Ref, len(all))
	for i, t := range all {
		refs[i] = document.Ref{Index: indexName, ID: t.id}
	}
	docs, err := w.search.Get(ctx, refs)
	if err != nil {
		return nil, err
	}
	wrong = append(wrong, tell("documents are not what their item is", compareDocuments(all, docs))...)

	kept := make(map[string]numbers)
	for i := range parents {
		var out struct {
			Item map[string]struct{ S, N string }
		}
		if err := local.Call(ctx, w.dynamoDB, "GetItem", fmt.Appendf(nil, `{"TableName":%q,"Key":{"parent":{"S":%q}},"ConsistentRead":true}`, parentsTable, parentName(i)), &out); err != nil {
			return nil, err
		}
		kept[parentName(i)] = numbers{number(out.Item["items"].N), number(out.Item["total"].N)}
	}
	return append(wrong, tell("parents have wrong numbers", compareNumbers(all, kept))...), nil
}

// tell makes one error of many findings.
func tell(what string, found []string) []error {
	if len(found) == 0 {
		return nil
	}
	return []error{fmt.Errorf("%d %s, such as %s", len(found), what, found[0])}
}

func compareMessages(sent []string, got map[string]int) (missing, unknown []string, twice int) {
	expected := make(map[string]bool, len(sent))
	for _, m := range sent {
		expected[m] = true
		if got[m] == 0 {
			missing = append(missing, m)
		}
	}
	for m, n := range got {
		if !expected[m] {
			unknown = append(unknown, m)
		}
		if n > 1 {
			twice++
		}
	}
	return missing, unknown, twice
}

// compareDocuments returns which documents differ from their items.
func compareDocuments(all []thing, docs []document.Doc) (different []string) {
	for i, t := range all {
		d := docs[i]
		var body struct {
			Rev, Amount int64
			Parent      string
		}
		switch {
		case d.Found != t.exists:
			different = append(different, fmt.Sprintf("%s: document there: %v, item there: %v", t.id, d.Found, t.exists))
		case !t.exists:
		case d.Version != t.rev:
			different = append(different, fmt.Sprintf("%s: version %d of revision %d", t.id, d.Version, t.rev))
		case json.Unmarshal(d.Source, &body) != nil || body.Rev != t.rev || body.Amount != t.amount || body.Parent != t.parent:
			different = append(different, fmt.Sprintf("%s: its contents are not those of revision %d", t.id, t.rev))
		}
	}
	return different
}

// numbers are those on a parent.
type numbers struct{ items, total int64 }

func compareNumbers(all []thing, kept map[string]numbers) (different []string) {
	want := make(map[string]numbers)
	for _, t := range all {
		if t.exists {
			n := want[t.parent]
			want[t.parent] = numbers{n.items + 1, n.total + t.amount}
		}
	}
	for parent, n := range kept {
		if n != want[parent] {
			different = append(different, fmt.Sprintf("%s: %d items in all %d, want %d in all %d", parent, n.items, n.total, want[parent].items, want[parent].total))
		}
	}
	return different
}

// number is 0 for an attribute that is not there: nothing was ever added.
func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}
