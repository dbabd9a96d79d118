// Package webhook tells a URL of a user's about an escalation: a POST of JSON
// with an Idempotency-Key, whose answer says whether that was done, will never
// be, or is to be tried again.
//
//	hook, err := webhook.New(webhook.Options{})
//	err = hook.Post(ctx, webhook.Call{URL: url, Key: "a271244#0", Body: body})
//
// The URLs come from users, and are not trusted: only https is spoken unless
// the options allow http, redirects lead to no other host, nothing of an answer
// is kept but its status, and addresses that are not public are refused unless
// the options allow them, so that a user cannot make the program call the
// services beside it.
package webhook
