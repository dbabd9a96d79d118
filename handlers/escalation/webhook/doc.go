// Package webhook notifies a user's URL about an escalation: a POST of JSON with
// an Idempotency-Key. The response means done, failed for good, or try again.
//
//	hook, err := webhook.New(webhook.Options{})
//	err = hook.Post(ctx, url, "a271244#0", body)
//
// URLs come from users and are not trusted. Only https is allowed, unless the
// options allow http. Redirects must stay on the host. Only the status of a
// response is kept. Addresses outside the public Internet are refused unless the
// options allow them, so that a user cannot reach services near the program.
package webhook
