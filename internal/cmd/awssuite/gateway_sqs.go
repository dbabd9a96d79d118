package main

import (
	"encoding/json"
	"net/http"
	"path"
	"strings"
)

func (g *gateway) serveSQS(w http.ResponseWriter, r *http.Request) {
	q, ok := g.read(w, r, "sqs")
	if !ok {
		return
	}
	var call struct{ QueueName, QueueUrl string }
	json.Unmarshal(q.body, &call) //nolint:errcheck // the service reports the mistake
	name := call.QueueName
	if call.QueueUrl != "" {
		name = path.Base(call.QueueUrl)
	}
	if action := g.denied("sqs", q.op); action != "" {
		q.refuse("com.amazonaws.sqs#AccessDenied", "policy.json does not allow "+action)
		return
	}
	if name != "" && !strings.HasPrefix(name, g.prefix) {
		if q.op == "CreateQueue" {
			q.refuse("com.amazonaws.sqs#AccessDenied", name+" does not begin with "+g.prefix+": name it with localtest.Name")
			return
		}
		w.Header().Set("X-Amzn-Query-Error", "AWS.SimpleQueueService.NonExistentQueue;Sender")
		q.refuse("com.amazonaws.sqs#QueueDoesNotExist", "The specified queue does not exist.")
		return
	}
	switch q.op {
	case "CreateQueue":
		g.remember(resource{"queue", name})
		q.body = withTags(q.body, "tags", map[string]string{tagKey: g.run})
		g.forward(g.ended, q, "sqs", g.account.urls.sqs, nothing)
	case "DeleteQueue":
		g.forward(g.ended, q, "sqs", g.account.urls.sqs, func() { g.forget(resource{"queue", name}) })
	default:
		g.forward(q.r.Context(), q, "sqs", g.account.urls.sqs, nothing)
	}
}
