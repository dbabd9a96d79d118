package streamtest

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
)

// iterator is a position in a shard: before the record with the ordinal at,
// counted from the shard's first record, trimmed or not.
type iterator struct {
	arn, shard string
	at         int
	issued     time.Time
}

// String returns the iterator for callers: the ARN followed by opaque text.
func (it iterator) String() string {
	inner := fmt.Appendf(nil, "%s|%d|%d", it.shard, it.at, it.issued.UnixNano())
	return it.arn + "|1|" + base64.StdEncoding.EncodeToString(inner)
}

func parseIterator(s string) (iterator, error) {
	var it iterator
	arn, rest, ok := strings.Cut(s, "|1|")
	inner, err := base64.StdEncoding.DecodeString(rest)
	parts := strings.Split(string(inner), "|")
	if !ok || err != nil || len(parts) != 3 {
		return it, errors.New("not an iterator")
	}
	it.arn, it.shard = arn, parts[0]
	if it.at, err = strconv.Atoi(parts[1]); err != nil {
		return it, err
	}
	ns, err := strconv.ParseInt(parts[2], 10, 64)
	it.issued = time.Unix(0, ns)
	return it, err
}

func (s *Service) getShardIterator(c *call) ([]byte, *apiError) {
	if c.in.StreamArn == "" || c.in.ShardId == "" || c.in.ShardIteratorType == "" {
		return nil, invalid("StreamArn, ShardId and ShardIteratorType are needed")
	}
	sh, err := s.readable(c)
	if err != nil {
		return nil, err
	}
	it := iterator{arn: c.in.StreamArn, shard: sh.id, issued: c.now}
	kind := c.in.ShardIteratorType
	if c.in.SequenceNumber != nil && (kind == "TRIM_HORIZON" || kind == "LATEST") {
		return nil, invalid("SequenceNumber should not be passed for ShardIteratorType %s", kind)
	}
	switch kind {
	case "TRIM_HORIZON":
		it.at = sh.trimmed
	case "LATEST":
		it.at = len(sh.records)
	case "AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER":
		if c.in.SequenceNumber == nil {
			return nil, invalid("A SequenceNumber is needed for ShardIteratorType %s", kind)
		}
		if it.at, err = sh.seek(sluice.Sequence(*c.in.SequenceNumber), kind == "AFTER_SEQUENCE_NUMBER"); err != nil {
			return nil, err
		}
	default:
		return nil, invalid("1 validation error detected: Value '%s' at 'shardIteratorType' failed to satisfy constraint: "+
			"Member must satisfy enum value set: [AT_SEQUENCE_NUMBER, AFTER_SEQUENCE_NUMBER, TRIM_HORIZON, LATEST]", kind)
	}
	return encode(map[string]string{"ShardIterator": it.String()}), nil
}

// readable returns the shard of a call, if it can be read.
func (s *Service) readable(c *call) (*shard, *apiError) {
	switch {
	case c.stream == nil:
		return nil, notFound("Stream: %s not found", c.in.StreamArn)
	case c.shard == nil || c.shard.gone(c.now, s.limits.Retention):
		return nil, notFound("Shard: %s in Stream: %s not found", c.in.ShardId, c.in.StreamArn)
	}
	return c.shard, nil
}
