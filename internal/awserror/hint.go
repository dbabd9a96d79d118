package awserror

import (
	"context"
	"errors"
	"net"
	"regexp"
	"strings"
)

// unreached is what helps when nothing answers at an endpoint.
const unreached = "the endpoint cannot be reached: is it right, and is the service running?"

// What helps against credentials that do not work.
const (
	noCredentials = "there are no credentials: set AWS_PROFILE or AWS_ACCESS_KEY_ID, or run with a role"
	notAccepted   = "the credentials are not accepted: check AWS_PROFILE, AWS_ACCESS_KEY_ID or the role"
	expired       = "the credentials have expired: renew them, such as by aws sso login; if they are in environment variables, set new ones and restart"
)

// Hint returns advice for err; "" if there is none. action is the permission of
// the call, thing its subject, such as "queue", and name the user's term for it,
// such as "name or URL".
func Hint(err error, action, thing, name string) string {
	if errors.As(err, new(*CredentialsError)) {
		return "" // it gives its own
	}
	var unreachable net.Error
	switch m := Of(err); m {
	case Missing:
		return "there is no such " + thing + " for this account and region: create it, or correct its " + name
	case NotAccepted, NoCredentials:
		return credentials(m, Code(err))
	case Denied:
		return "the credentials lack the permission " + action + " on the " + thing + ", or its key"
	case BadKey:
		return "the KMS key of the " + thing + " cannot be used: see that it is there and enabled"
	case Lost:
		if errors.As(err, &unreachable) && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
			return unreached
		}
	}
	return ""
}

// Credentials tells a person what to do about err when it is about credentials;
// else "".
func Credentials(err error) string {
	if c := (*CredentialsError)(nil); errors.As(err, &c) {
		return c.Do
	}
	return credentials(Of(err), Code(err))
}

func credentials(m Meaning, code string) string {
	switch {
	case m == NotAccepted && strings.Contains(code, "Expired"):
		return expired
	case m == NotAccepted:
		return notAccepted
	case m == NoCredentials:
		return noCredentials
	}
	return ""
}

var (
	// sdkWords are those of the SDK around service, call, code and message of an error.
	sdkWords = regexp.MustCompile(`operation error ([^:,]+): (\w+), (?:exceeded maximum number of attempts, \d+, )?https response error StatusCode: \d+, RequestID: [^,]*, (?:api error )?(?:(\w+): )?`)
	// unsigned are the SDK's words when there is nothing to sign with.
	unsigned = regexp.MustCompile(`operation error ([^:,]+): (\w+), (?:exceeded maximum number of attempts, \d+, )?(?:get identity: )?get credentials: `)
	// undialed matches the SDK's error without a connection to the endpoint.
	undialed = regexp.MustCompile(`: request send failed, \w+ "(\w+://[^/"]+)[^"]*": dial `)
	// ofCredentials matches the What of a CredentialsError.
	ofCredentials = regexp.MustCompile(`: cannot (assume role|use profile) `)
	twoDots       = regexp.MustCompile(`([\pL\pN"')\]])\.\.(\s|$)`) // no folder
)

// Plain is the text of an error without the SDK's words around service, call and
// code, and with what to do about credentials and about an endpoint that cannot be
// reached.
func Plain(text string) string {
	hint := ""
	if m := sdkWords.FindStringSubmatch(text); m != nil {
		hint = credentials(OfCode(m[3]), m[3])
		text = sdkWords.ReplaceAllStringFunc(text, func(words string) string {
			m := sdkWords.FindStringSubmatch(words)
			if m[3] == "" {
				return m[1] + " " + m[2] + ": "
			}
			return m[1] + " " + m[2] + ": " + m[3] + ": "
		})
	}
	switch {
	case ofCredentials.MatchString(text): // it has its own hint
		hint = ""
		text = unsigned.ReplaceAllString(text, "$1 $2: ")
	case unsigned.MatchString(text):
		hint = noCredentials
		text = unsigned.ReplaceAllString(text, "$1 $2: no credentials: ")
	}
	where := " at $1: " + unreached
	if strings.Contains(strings.ToLower(text), "is the service running") { // Hint or the poller says it
		where = ""
	}
	text = undialed.ReplaceAllString(text, where+": dial ")
	text = strings.ReplaceAll(text, "canceled, context deadline exceeded", "no answer in time")
	text = twoDots.ReplaceAllString(text, "$1.$2")
	if hint == "" || strings.Contains(strings.ToLower(text), strings.ToLower(hint)) {
		return text
	}
	return strings.TrimSuffix(text, ".") + ": " + hint
}
