package dynamodb

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice/dynamo"
	"github.com/sluicehq/sluice/sdkitem"
)

// transaction is a TransactWriteItems for some units.
type transaction struct {
	units []*unit
	steps []*step
	at    map[ref]*step
	begun time.Time
	asked uint64 // units that had come when it was sent
	bytes int
	full  bool // the last unit that was not taken is too much
}

// step is one operation of a transaction: one part, or several that add to the
// same item.
type step struct {
	shares []share
	by     map[string]int64 // of Adds: the sums
}

type share struct {
	unit *unit
	part *part
}

func newTransaction() *transaction { return &transaction{at: map[ref]*step{}} }

// take puts u into t if it fits.
func (t *transaction) take(u *unit) bool {
	if len(t.units) > 0 {
		if first := t.units[0]; u.alone || first.alone || u.party != first.party {
			return false
		}
		more := 0
		for _, p := range u.parts {
			if p = p.written(); p == nil {
				continue
			}
			s := t.at[p.ref]
			if s == nil {
				more++
			} else if !s.merges(p) {
				return false
			}
		}
		if len(t.steps)+more > maxOperations || t.bytes+u.size > maxBytes {
			t.full = true
			return false
		}
	}
	t.units = append(t.units, u)
	t.bytes += u.size
	for _, p := range u.parts {
		if p = p.written(); p == nil {
			continue
		}
		s := t.at[p.ref]
		if s == nil || !s.merges(p) { // of u's own, when they are only alike
			s = &step{}
			t.at[p.ref] = s
			t.steps = append(t.steps, s)
		}
		s.shares = append(s.shares, share{u, p})
		if p.what == anAdd {
			if s.by == nil {
				s.by = make(map[string]int64, len(p.add.By))
			}
			for name, by := range p.add.By {
				s.by[name] += by
			}
		}
	}
	return true
}

// merges reports whether p can be added to what s adds. A sum that leaves the
// range of int64 cannot: it would wrap.
func (s *step) merges(p *part) bool {
	first := s.shares[0].part
	if p.what != anAdd || first.what != anAdd || p.table != first.table || p.add.Create != first.add.Create || !p.key.Equal(first.key) {
		return false
	}
	attributes := len(s.by)
	for name, by := range p.add.By {
		sum, ok := s.by[name]
		if !ok {
			attributes++
		} else if total := sum + by; (total < sum) != (by < 0) {
			return false
		}
	}
	return attributes <= maxAttributes
}

func (t *transaction) input() *dynamodb.TransactWriteItemsInput {
	items := make([]types.TransactWriteItem, len(t.steps))
	for i, s := range t.steps {
		if items[i] = s.shares[0].part.item; s.by != nil {
			items[i] = types.TransactWriteItem{Update: addition(s.shares[0].part.add, s.by)}
		}
	}
	return &dynamodb.TransactWriteItemsInput{TransactItems: items}
}

// addition is the Update that adds to the item of a.
func addition(a *dynamo.Add, by map[string]int64) *types.Update {
	names := make(map[string]string, len(by)+1)
	values := make(map[string]types.AttributeValue, len(by))
	var expression strings.Builder
	for i, name := range slices.Sorted(maps.Keys(by)) {
		n := strconv.Itoa(i)
		if i == 0 {
			expression.WriteString("ADD ")
		} else {
			expression.WriteString(", ")
		}
		expression.WriteString("#" + n + " :" + n)
		names["#"+n] = name
		values[":"+n] = &types.AttributeValueMemberN{Value: strconv.FormatInt(by[name], 10)}
	}
	u := &types.Update{
		TableName: &a.Table, Key: sdkitem.Map(a.Key), UpdateExpression: new(expression.String()),
		ExpressionAttributeNames: names, ExpressionAttributeValues: values,
	}
	if !a.Create {
		for name := range a.Key.All() {
			names["#k"] = name
			break
		}
		u.ConditionExpression = new("attribute_exists(#k)")
	}
	return u
}
