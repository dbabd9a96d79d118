package main

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/rivo/uniseg"

	"github.com/sluicehq/sluice/internal/letters"
)

// advice says what to do for an error. docs/dead-letters.md has all of it as a
// table.
type advice struct {
	shows string // visible part of the error, in Markdown
	in    *regexp.Regexp
	kind  string // of the letters that it is for; "" is all
	do    string // in Markdown; ID and ROUTE are those of the letter
}

// advices are looked at from the first: special ones stand before general ones.
var advices = []advice{
	{
		shows: "(a gap)",
		kind:  "gap",
		do:    "The stream trimmed these records unread. Compare the table with the effects ([audit](audit.md)), then `sluice gaps acknowledge`, or `sluice dlq purge ID`.",
	},
	{
		shows: "`mapper_parsing_exception`, `document_parsing_exception`, `strict_dynamic_mapping_exception`",
		in:    regexp.MustCompile(`(mapper|document)_parsing_exception|strict_dynamic_mapping_exception`),
		do:    "The item does not fit the mapping of the index. Correct the item in the table, then `sluice dlq purge ID`. Or correct the mapping: [reindex](reindex.md) with `start`, `swap --force` and `finish`, then `sluice dlq redrive ID`.",
	},
	{
		shows: "another refusal of OpenSearch: `status 400`, `404`, `409`, `413`",
		in:    regexp.MustCompile(`of a document in ".*": status (400|404|409|413)`),
		do:    "OpenSearch refuses this document. Correct the item, the template of the index name, or the id, then `sluice dlq redrive ID`.",
	},
	{
		shows: "`has no good step, and the escalation was failed`",
		in:    regexp.MustCompile(`has no good step, and the escalation was failed`),
		do:    "Nobody was called. Correct the bad steps, set the status of the escalation to the active one (a redrive does not resume it), then `sluice dlq purge ID`.",
	},
	{
		shows: "`panic:` with its stack, `handler ended its goroutine`",
		in:    regexp.MustCompile(`(?m)^panic: |panic: .*\n|handler ended its goroutine`),
		do:    "The handler has a bug. Correct and deploy it, then `sluice dlq redrive ID`.",
	},
	{
		shows: "`undecodable record`",
		in:    regexp.MustCompile(`undecodable record`),
		do:    "Something changed the record, or the program is too old for it. Run a newer program and `sluice dlq redrive ID`; or write the item again and `sluice dlq purge ID`.",
	},
	{
		shows: "`came without it; set the table's StreamViewType`",
		in:    regexp.MustCompile(`set the table's StreamViewType`),
		do:    "The stream does not carry the images that the route needs. Enable a stream with `NEW_AND_OLD_IMAGES`. Write the item again, or [backfill](backfill.md), then `sluice dlq purge ID`.",
	},
	{
		shows: "`although the stream should send one`",
		in:    regexp.MustCompile(`although the stream should send one`),
		do:    "The record came without an image, as DynamoDB Local sends for deletes in batches. Find missing effects by [audit](audit.md) or [recount](counters.md), then `sluice dlq purge ID`.",
	},
	{
		shows: "`when \"…\":`, such as `a text > a number`",
		in:    regexp.MustCompile(`when ".*"[,:]`),
		do:    "The expression of the route fails for this item. Correct the expression and restart, or correct the item, then `sluice dlq redrive ID`.",
	},
	{
		shows: "`no route takes messages of kind`, `no member \"kind\"`, `unknown event name`",
		in:    regexp.MustCompile(`no route takes messages of kind|has no member "kind"|unknown event name`),
		do:    "Nobody handles such messages. Add a route and `sluice dlq redrive ID`, or stop its sender and `sluice dlq purge ID`.",
	},
	{
		shows: "`there is no route … any more`, `does not take this record any more`",
		in:    regexp.MustCompile(`there is no route .* any more|does not take this record any more`),
		do:    "The route was renamed, or filters the record now. Restore it and `sluice dlq redrive ID`; or `sluice dlq purge ID`.",
	},
	{
		shows: "`does not allow redriven records`",
		in:    regexp.MustCompile(`does not allow redriven records`),
		do:    "This record could undo a later change of the item. Compare the item with its effects. If it cannot: `sluice dlq redrive ID --allow ROUTE`; else `sluice dlq purge ID`.",
	},
	{
		shows: "`AccessDenied`, `not authorized`, `security token … expired`, `status 401`, `status 403`",
		in:    regexp.MustCompile(`AccessDenied|not authorized|[Ee]xpiredToken|security token|UnrecognizedClient|[Ss]tatus(Code:)? ?40[13]|\b40[13] (Unauthorized|Forbidden)`),
		do:    "Give the role the permission (deploy/iam), or renew the credentials, then `sluice dlq redrive --route ROUTE`.",
	},
	{
		shows: "`ConditionalCheckFailed`, `ValidationException`, `ItemCollectionSizeLimit` of DynamoDB",
		in:    regexp.MustCompile(`ConditionalCheckFailed|ValidationException|ItemCollectionSizeLimit|ItemSize`),
		do:    "DynamoDB refuses the write. Correct the item or the route's template, then `sluice dlq redrive ID`.",
	},
	{
		shows: "`more than the limit of`, `SQS refused the message`, `SQS does not allow`",
		in:    regexp.MustCompile(`more than the limit of \d|SQS refused the message|SQS allows|SQS does not allow`),
		do:    "SQS does not take this message. Send less of the item (`body` of the route), then `sluice dlq redrive ID`.",
	},
	{
		shows: "timeouts, `connection refused`, `no such host`, throttling, `status 429`, `status 5…`",
		in:    regexp.MustCompile(`(?i)deadline exceeded|time-?out|timed out|connection (refused|reset)|no such host|throttl|ThroughputExceeded|too many requests|unavailable|\b(429|50[0234])\b`),
		do:    "The sink was down or slow. When it works again (`sluice status`): `sluice dlq redrive --route ROUTE`.",
	},
	{
		shows: "anything else",
		do:    "The handler refused the record, or kept failing. Correct the handler, then `sluice dlq redrive ID`. Or correct the item, then `sluice dlq purge ID`: the letter keeps the old image.",
	},
}

// adviceFor is what to do for a letter: for its last error, or else for the first.
func adviceFor(o letters.Outline) advice {
	for _, text := range []string{o.Last.Error, o.First.Error} {
		for _, a := range advices {
			if a.kind == "gap" && o.Kind == "gap" || a.in != nil && a.in.MatchString(text) && o.Kind != "gap" {
				return a
			}
		}
	}
	return advices[len(advices)-1]
}

var (
	markdownLink = regexp.MustCompile(`\[([^]]*)\]\(([^)]*)\)`)
	idOrRoute    = regexp.MustCompile(`\b(ID|ROUTE)\b`)
	ourCommand   = regexp.MustCompile("`sluice [^`]*`")
)

// text is what to do, for a terminal, with each command on a line of its own. place
// are the flags that say where the letter is.
func (a advice) text(o letters.Outline, place string) string {
	do, id := a.do, letters.ShortID(o.ID)
	if o.Unverified != "" {
		id = o.ID // a sender can choose the first digits
		do = "Nobody knows who sent this letter: whoever can send to its queue may have made it. Compare it with the item in the table first, and purge it if it is forged. " +
			strings.ReplaceAll(do, "redrive ID", "redrive --unsigned ID")
	}
	route := cmp.Or(o.Route, "ROUTE") // the letter is for all
	var commands []string
	do = markdownLink.ReplaceAllString(do, "$1 (docs/$2)")
	do = ourCommand.ReplaceAllStringFunc(do, func(quoted string) string {
		command := idOrRoute.ReplaceAllStringFunc(strings.Trim(quoted, "`"), func(name string) string {
			if name == "ID" {
				return id
			}
			return shellQuoted(route)
		})
		if strings.HasPrefix(command, "sluice dlq ") {
			command += place
		}
		if !slices.Contains(commands, command) {
			commands = append(commands, command)
		}
		return fmt.Sprintf("[%d]", slices.Index(commands, command)+1)
	})
	text := wrapped(strings.ReplaceAll(do, "`", ""), adviceWidth)
	for i, command := range commands {
		text += fmt.Sprintf("\n  [%d] %s", i+1, plain(command))
	}
	if strings.Contains(text, "dlq redrive") && !strings.Contains(text, "--allow") {
		text += "\n" + wrapped("A route that refuses redriven records needs --allow "+shellQuoted(route)+". First see that the record cannot undo a later change.", adviceWidth)
	}
	return text
}

const adviceWidth = 100 // columns

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:=@%+-]+$`)

// shellQuoted is a word of a shell.
func shellQuoted(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// wrapped breaks a text between words into lines of so many columns.
func wrapped(text string, columns int) string {
	var b strings.Builder
	used := 0
	for word := range strings.FieldsSeq(text) {
		switch width := uniseg.StringWidth(word); {
		case used == 0:
			used = width
		case used+1+width > columns:
			b.WriteByte('\n')
			used = width
		default:
			b.WriteByte(' ')
			used += 1 + width
		}
		b.WriteString(word)
	}
	return b.String()
}
