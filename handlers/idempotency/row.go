package idempotency

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/item"
)

// Attributes of a row, and values of its status.
const (
	attrID         = "id"
	attrExpiration = "expiration"
	attrInProgress = "in_progress_expiration"
	attrStatus     = "status"
	attrData       = "data"
	attrValidation = "validation"
	attrClaim      = "claim"

	inProgress = "INPROGRESS"
	completed  = "COMPLETED"
	expired    = "EXPIRED"
)

// claim is one try to handle a record.
type claim struct {
	id         string
	token      string // identifies it
	until      time.Time
	validation string // "" is none
}

func hash(payload []byte) string {
	sum := sha256.Sum256(payload)
	return hex.EncodeToString(sum[:])
}

// put claims a record that is neither claimed nor completed, or whose claim or row
// has ended.
func (m *once) put(c claim, now time.Time) dynamo.Op {
	expires := now.Add(m.o.TTL).Unix()
	expires = max(expires, c.until.Unix()+1) // otherwise, with a TTL shorter than the handler's time, another would take over
	attrs := []item.Attribute{
		item.String(attrID, c.id),
		item.Number(attrExpiration, decimal(expires)),
		item.Number(attrInProgress, decimal(c.until.UnixMilli())),
		item.String(attrStatus, inProgress),
		item.String(attrClaim, c.token),
	}
	if c.validation != "" {
		attrs = append(attrs, item.String(attrValidation, c.validation))
	}
	return dynamo.Put(m.o.Table, item.Of(attrs...)).
		If("attribute_not_exists(#id) OR #expiration < :seconds OR #status = :expired OR (#status = :inprogress AND #until < :millis)").
		Name("#id", attrID).Name("#expiration", attrExpiration).Name("#status", attrStatus).Name("#until", attrInProgress).
		Value(":seconds", now.Unix()).Value(":millis", now.UnixMilli()).Value(":inprogress", inProgress).Value(":expired", expired)
}

// done marks the record as completed, whoever holds the claim now.
func (m *once) done(c claim, now time.Time) dynamo.Op {
	update := "SET #status = :completed, #expiration = :expiration, #data = :null"
	if c.validation != "" {
		update += ", #validation = :validation"
	}
	op := dynamo.Update(m.o.Table, key(c.id), update+" REMOVE #claim").
		Name("#status", attrStatus).Name("#expiration", attrExpiration).Name("#data", attrData).Name("#claim", attrClaim).
		Value(":completed", completed).Value(":expiration", now.Add(m.o.TTL).Unix()).Value(":null", "null")
	if c.validation != "" {
		op = op.Name("#validation", attrValidation).Value(":validation", c.validation)
	}
	return op
}

// drop deletes the row while it belongs to this claim.
func (m *once) drop(c claim) dynamo.Op {
	return dynamo.Delete(m.o.Table, key(c.id)).If("#claim = :claim").Name("#claim", attrClaim).Value(":claim", c.token)
}

func key(id string) sluice.Item { return item.Of(item.String(attrID, id)) }

// row is a decoded row of the table.
type row struct {
	status     string
	until      time.Time // end of a claim
	validation string
	token      string
}

func read(it sluice.Item) (r row, err error) {
	text := func(name string) string {
		v, _ := it.Lookup(name)
		return v.Str()
	}
	r = row{status: text(attrStatus), validation: text(attrValidation), token: text(attrClaim)}
	switch r.status {
	case completed:
		return r, nil
	case inProgress, expired:
	default:
		return r, fmt.Errorf("attribute %q is %q, want %s or %s: is the table one of idempotency?", attrStatus, r.status, inProgress, completed)
	}
	if v, ok := it.Lookup(attrInProgress); ok {
		ms, whole := v.Int64()
		if !whole {
			return r, notWhole(attrInProgress)
		}
		r.until = time.UnixMilli(ms)
		return r, nil
	}
	v, ok := it.Lookup(attrExpiration) // the claim has no own end: Powertools without a Lambda context
	s, whole := v.Int64()
	switch {
	case !ok:
		return r, errors.New("it is in progress without an end: " + attrInProgress + " and " + attrExpiration + " are missing")
	case !whole:
		return r, notWhole(attrExpiration)
	}
	r.until = time.Unix(s+1, 0) // a row has expired when its second is over
	return r, nil
}

func notWhole(name string) error { return fmt.Errorf("attribute %q is no whole number", name) }

func decimal(n int64) string { return strconv.FormatInt(n, 10) }
