package streamtest

import (
	"slices"

	"github.com/sluicehq/sluice/item"
)

type keyElement struct{ AttributeName, KeyType string }

type tableDescription struct {
	TableName, TableStatus, TableArn string
	CreationDateTime                 int64
	KeySchema                        []keyElement
	AttributeDefinitions             []struct{ AttributeName, AttributeType string }
	ItemCount                        int
	LatestStreamArn                  string               `json:",omitempty"`
	LatestStreamLabel                string               `json:",omitempty"`
	StreamSpecification              *streamSpecification `json:",omitempty"`
}

type streamSpecification struct {
	StreamEnabled  bool
	StreamViewType string
}

func (s *Service) describeTable(c *call) ([]byte, *apiError) {
	t := s.tables[c.in.TableName]
	if t == nil {
		return nil, notFound("Table: %s not found", c.in.TableName)
	}
	d := tableDescription{
		TableName: t.name, TableStatus: "ACTIVE", TableArn: t.arn(), CreationDateTime: t.created.Unix(),
		KeySchema: t.keySchema(), ItemCount: len(t.items),
	}
	for i, k := range t.keys {
		kind := t.kinds[i]
		if kind == item.Invalid { // no item yet
			kind = item.S
		}
		d.AttributeDefinitions = append(d.AttributeDefinitions, struct{ AttributeName, AttributeType string }{k, kind.String()})
	}
	if st := t.stream; st != nil {
		d.LatestStreamArn, d.LatestStreamLabel = st.arn, st.label
		if st.enabled() {
			d.StreamSpecification = &streamSpecification{true, st.view.String()}
		}
	}
	return encode(map[string]any{"Table": d}), nil
}

type streamSummary struct{ StreamArn, StreamLabel, TableName string }

func (s *Service) listStreams(c *call) ([]byte, *apiError) {
	limit, err := c.limit(100, 100)
	if err != nil {
		return nil, err
	}
	streams := s.streams
	if from := c.in.ExclusiveStartStreamArn; from != "" {
		i := slices.IndexFunc(streams, func(st *stream) bool { return st.arn == from })
		streams = streams[i+1:]
	}
	var out struct {
		Streams                []streamSummary
		LastEvaluatedStreamArn string `json:",omitempty"`
	}
	out.Streams = []streamSummary{}
	for _, st := range streams {
		if c.in.TableName != "" && st.table != c.in.TableName || st.gone(c.now, s.limits.Retention) {
			continue
		}
		if len(out.Streams) == limit {
			out.LastEvaluatedStreamArn = out.Streams[limit-1].StreamArn
			break
		}
		out.Streams = append(out.Streams, streamSummary{st.arn, st.label, st.table})
	}
	return encode(out), nil
}

// limit returns a call's Limit; the default and the maximum is page. A Limit above
// most is an error.
func (c *call) limit(page, most int) (int, *apiError) {
	switch l := c.in.Limit; {
	case l == nil:
		return page, nil
	case *l < 1 || *l > most:
		return 0, invalid("1 validation error detected: Value '%d' at 'limit' failed to satisfy constraint: Member must have value from 1 to %d", *l, most)
	default:
		return min(*l, page), nil
	}
}

type streamDescription struct {
	CreationRequestDateTime int64
	KeySchema               []keyElement
	LastEvaluatedShardId    *string `json:",omitempty"`
	Shards                  []shardDescription
	StreamArn, StreamLabel  string
	StreamStatus            string
	StreamViewType          string
	TableName               string
}

type shardDescription struct {
	ShardId             string
	ParentShardId       string `json:",omitempty"`
	SequenceNumberRange struct {
		StartingSequenceNumber string
		EndingSequenceNumber   string `json:",omitempty"`
	}
}

func (s *Service) describeStream(c *call) ([]byte, *apiError) {
	limit, err := c.limit(s.limits.PageShards, 100)
	if err != nil {
		return nil, err
	}
	if c.in.StreamArn == "" {
		return nil, invalid("StreamArn is missing")
	}
	st := c.stream
	if st == nil {
		return nil, notFound("Stream: %s not found", c.in.StreamArn)
	}
	if !st.describes.take(c.now, s.limits.DescribesPerStream) {
		return nil, &apiError{code: "ThrottlingException", message: "Rate of DescribeStream calls exceeds the limit of the stream"}
	}
	shards := st.list(c.now, s.limits.Retention)
	if f := c.in.ShardFilter; f != nil {
		if f.Type != "CHILD_SHARDS" || f.ShardId == "" {
			return nil, invalid("ShardFilter needs the Type CHILD_SHARDS and a ShardId")
		}
		shards = slices.DeleteFunc(shards, func(sh *shard) bool { return sh.parent != f.ShardId })
	}
	var first *shard
	if len(shards) > 0 {
		first = shards[0]
	}
	if from := c.in.ExclusiveStartShardId; from != "" {
		if len(from) < 28 || len(from) > 65 {
			return nil, invalid("1 validation error detected: Value '%s' at 'exclusiveStartShardId' failed to satisfy constraint: Member must have length from 28 to 65", from)
		}
		shards = slices.DeleteFunc(shards, func(sh *shard) bool { return !listedBefore(from, sh.id) })
	}
	d := streamDescription{
		CreationRequestDateTime: st.created.Unix(), KeySchema: st.keySchema, Shards: []shardDescription{},
		StreamArn: st.arn, StreamLabel: st.label, StreamStatus: "ENABLED", StreamViewType: st.view.String(), TableName: st.table,
	}
	if !st.enabled() {
		d.StreamStatus = "DISABLED"
	}
	page := shards[:min(limit, len(shards))]
	if len(page) < len(shards) {
		d.LastEvaluatedShardId = &page[len(page)-1].id
	}
	if c.do.loop && first != nil {
		d.LastEvaluatedShardId = &first.id
	}
	for _, sh := range page {
		if sh.hidden == 0 {
			d.Shards = append(d.Shards, sh.describe())
		}
	}
	d.Shards = c.do.listing.garble(st, d.Shards)
	for _, sh := range page {
		sh.hidden = max(0, sh.hidden-1)
	}
	return encode(map[string]any{"StreamDescription": d}), nil
}

func (sh *shard) describe() shardDescription {
	d := shardDescription{ShardId: sh.id, ParentShardId: sh.parent}
	d.SequenceNumberRange.StartingSequenceNumber = string(sh.start)
	d.SequenceNumberRange.EndingSequenceNumber = string(sh.end)
	return d
}
