package dynamodb

import (
	"context"
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// service fakes TransactWriteItems for the tests' expressions. A running request locks
// its items. As in the service, another request for such an item is cancelled.
type service struct {
	t      *testing.T
	faults faults
	answer func(n int, in *dynamodb.TransactWriteItemsInput) error // in place of all else; nil is none

	mu       sync.Mutex
	rand     *rand.Rand
	items    map[string]map[string]string // number or text by attribute
	busy     map[string]bool
	requests int
	steps    []int // of each request
	done     int   // requests that were applied
}

// faults are chances, from 0 to 1.
type faults struct {
	before   float64 // an error, nothing done
	lost     float64 // done, but the answer is lost
	throttle float64 // of the whole request
	step     float64 // a step is throttled
	foreign  float64 // a step is in conflict with somebody else
	hidden   float64 // no reasons are given
	slow     float64 // it takes some seconds
}

func newService(t *testing.T, seed uint64, f faults) *service {
	return &service{t: t, faults: f, rand: rand.New(rand.NewPCG(seed, 1)), items: map[string]map[string]string{}, busy: map[string]bool{}}
}

func (s *service) chance(p float64) bool { return s.rand.Float64() < p }

func (s *service) send(ctx context.Context, in *dynamodb.TransactWriteItemsInput) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	s.steps = append(s.steps, len(in.TransactItems))
	if s.answer != nil {
		if err := s.answer(s.requests, in); err != nil {
			return err
		}
	}
	steps, err := s.read(in)
	if err != nil {
		return err
	}
	switch {
	case s.chance(s.faults.before):
		return failure(500, "InternalServerError", "")
	case s.chance(s.faults.throttle):
		return failure(400, "ThrottlingException", "")
	}
	reasons := make([]types.CancellationReason, len(steps))
	for i, st := range steps {
		reasons[i].Code = new(s.judge(st))
		if st.old && *reasons[i].Code == "ConditionalCheckFailed" {
			reasons[i].Item = attributes(s.items[st.key])
		}
	}
	if slices.ContainsFunc(reasons, func(r types.CancellationReason) bool { return *r.Code != "None" }) {
		if s.chance(s.faults.hidden) {
			reasons = nil
		}
		return &types.TransactionCanceledException{CancellationReasons: reasons}
	}
	lost := s.chance(s.faults.lost)
	for _, st := range steps {
		s.busy[st.key] = true
	}
	took := time.Duration(s.rand.IntN(20)+1) * time.Millisecond
	if s.chance(s.faults.slow) {
		took *= 200
	}
	s.mu.Unlock()
	time.Sleep(took)
	s.mu.Lock()
	for _, st := range steps {
		delete(s.busy, st.key)
		s.apply(st)
	}
	s.done++
	if lost {
		return fmt.Errorf("connection reset, context %v", ctx.Err())
	}
	return nil
}

// step is one operation, read.
type fakeStep struct {
	key, table string
	put        map[string]types.AttributeValue
	update     string
	condition  string
	names      map[string]string
	values     map[string]types.AttributeValue
	old        bool // asks for the item
}

func (s *service) read(in *dynamodb.TransactWriteItemsInput) ([]fakeStep, error) {
	if n := len(in.TransactItems); n < 1 || n > 100 {
		s.t.Errorf("%d operations", n)
	}
	var steps []fakeStep
	seen := map[string]bool{}
	for _, t := range in.TransactItems {
		var st fakeStep
		switch {
		case t.Put != nil:
			st = fakeStep{put: t.Put.Item, table: *t.Put.TableName, condition: text(t.Put.ConditionExpression), names: t.Put.ExpressionAttributeNames, values: t.Put.ExpressionAttributeValues, old: t.Put.ReturnValuesOnConditionCheckFailure != ""}
			st.key = keyText(st.table, map[string]types.AttributeValue{"pk": t.Put.Item["pk"]})
		case t.Update != nil:
			st = fakeStep{table: *t.Update.TableName, update: *t.Update.UpdateExpression, condition: text(t.Update.ConditionExpression), names: t.Update.ExpressionAttributeNames, values: t.Update.ExpressionAttributeValues, old: t.Update.ReturnValuesOnConditionCheckFailure != ""}
			st.key = keyText(st.table, t.Update.Key)
		case t.ConditionCheck != nil:
			st = fakeStep{table: *t.ConditionCheck.TableName, condition: text(t.ConditionCheck.ConditionExpression), names: t.ConditionCheck.ExpressionAttributeNames, values: t.ConditionCheck.ExpressionAttributeValues, old: true}
			st.key = keyText(st.table, t.ConditionCheck.Key)
		}
		switch {
		case st.table == "missing":
			return nil, failure(400, "ResourceNotFoundException", "")
		case seen[st.key]:
			return nil, failure(400, "ValidationException", "Transaction request cannot include multiple operations on one item")
		case strings.Contains(st.update, "!"):
			return nil, failure(400, "ValidationException", "Invalid UpdateExpression")
		}
		seen[st.key] = true
		steps = append(steps, st)
	}
	return steps, nil
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func keyText(table string, key map[string]types.AttributeValue) string {
	return table + "/" + plain(key["pk"])
}

func plain(av types.AttributeValue) string {
	switch v := av.(type) {
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberN:
		return v.Value
	}
	return fmt.Sprint(av)
}

func attributes(it map[string]string) map[string]types.AttributeValue {
	m := map[string]types.AttributeValue{}
	for name, v := range it {
		m[name] = &types.AttributeValueMemberS{Value: v}
	}
	return m
}

// judge returns the code of a step.
func (s *service) judge(st fakeStep) string {
	it, exists := s.items[st.key]
	switch {
	case s.busy[st.key], s.chance(s.faults.foreign):
		return "TransactionConflict"
	case s.chance(s.faults.step):
		return []string{"ThrottlingError", "ProvisionedThroughputExceeded"}[s.rand.IntN(2)]
	}
	ok := true
	switch {
	case st.condition == "":
	case st.condition == "attribute_exists(#k)":
		ok = exists
	case st.condition == "attribute_not_exists(#k)":
		ok = !exists
	default: // #s = :old
		name, value, _ := strings.Cut(st.condition, " = ")
		ok = exists && it[st.names[name]] == plain(st.values[value])
	}
	if !ok {
		return "ConditionalCheckFailed"
	}
	if strings.HasPrefix(st.update, "ADD ") {
		for _, add := range strings.Split(st.update[len("ADD "):], ", ") {
			name, _, _ := strings.Cut(add, " ")
			if _, number := new(big.Int).SetString(it[st.names[name]], 10); it[st.names[name]] != "" && !number {
				return "ValidationError"
			}
		}
	}
	return "None"
}

func (s *service) apply(st fakeStep) {
	it := maps.Clone(s.items[st.key])
	if it == nil {
		it = map[string]string{}
	}
	switch {
	case st.put != nil:
		clear(it)
		for name, av := range st.put {
			it[name] = plain(av)
		}
	case strings.HasPrefix(st.update, "ADD "):
		for _, add := range strings.Split(st.update[len("ADD "):], ", ") {
			name, value, _ := strings.Cut(add, " ")
			sum, by := new(big.Int), new(big.Int)
			sum.SetString(it[st.names[name]], 10)
			if _, ok := by.SetString(plain(st.values[value]), 10); !ok {
				s.t.Errorf("adds %s", plain(st.values[value]))
			}
			it[st.names[name]] = sum.Add(sum, by).String()
		}
	case strings.HasPrefix(st.update, "SET "):
		name, value, _ := strings.Cut(st.update[len("SET "):], " = ")
		it[st.names[name]] = plain(st.values[value])
	case st.update == "":
		return // a check
	default:
		s.t.Errorf("update %q", st.update)
	}
	s.items[st.key] = it
}

// store returns a Store whose Once uses the service.
func (s *service) store(o Options) *Store {
	o = o.withDefaults()
	st := &Store{opt: o, where: "at a test"}
	for table, names := range o.Keys {
		st.keys.set(table, names, true)
	}
	st.once = newOnce(s.send, func(err error) error { return st.explain("TransactWriteItems", "", err) }, o)
	return st
}
