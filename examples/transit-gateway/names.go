package transitgateway

import (
	"context"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/effect/message"
	"github.com/sluicehq/sluice/examples/internal/kit"
	"github.com/sluicehq/sluice/item"
)

// claimKind is the kind of the messages to the janitor.
const claimKind = "tgw.name"

// CheckAfter is how long after a name was claimed the gateway must be there.
const CheckAfter = 900 * time.Second

// janitor releases names whose gateways were never made: a writer that creates
// in steps died after the claim.
type janitor struct {
	*Gateways
	later func(ctx context.Context, c message.Check) error
}

// onClaim has a new claim looked at later.
func (j janitor) onClaim(ctx context.Context, rec *sluice.Record) error {
	claimed := rec.Created
	if claimed.IsZero() {
		claimed = j.now() // a record need not say
	}
	return j.later(ctx, message.Check{
		Kind: claimKind, Table: rec.Table, Key: rec.Keys, NotBefore: claimed.Add(CheckAfter), DedupeKey: claimOf(rec.New),
	})
}

// claimOf tells a claim from others of the same name.
func claimOf(claim sluice.Item) string {
	return kit.Text(claim, "name_key") + "#" + kit.Text(claim, "tgw_id")
}

// look deletes the claim that a message is about, if no gateway has the name. A
// claim of another gateway is younger, and has a message of its own.
func (j janitor) look(ctx context.Context, rec *sluice.Record) error {
	check, err := message.ReadCheck(rec)
	if err != nil {
		return err
	}
	claim, err := j.store.Get(ctx, j.table("tgw_name"), check.Key)
	if err != nil {
		return err
	}
	if claimOf(claim) != check.DedupeKey {
		return sluice.Skip("released, or claimed by another gateway")
	}
	owner, name, _ := strings.Cut(kit.Text(claim, "name_key"), "#")
	id := kit.Text(claim, "tgw_id")
	// One transaction: the gateway may be created at this very moment.
	err = j.store.Transact(ctx,
		dynamo.Check(j.table("tgw"), gatewayKey(owner, id), "attribute_not_exists(tgw_id) OR #name <> :name").
			Name("#name", "name").Value(":name", name),
		dynamo.Delete(j.table("tgw_name"), claim.Only("name_key")).If("tgw_id = :id").Value(":id", id))
	if dynamo.IsCondition(err) {
		return sluice.Skip("in use")
	}
	return err
}

// nameKey is the key of a name's claim.
func nameKey(ownerID, name string) string { return ownerID + "#" + name }

// claim makes the name one of the gateway's.
func (g *Gateways) claim(ownerID, name, id string) dynamo.Op {
	return dynamo.Put(g.table("tgw_name"), item.Of(item.String("name_key", nameKey(ownerID, name)), item.String("tgw_id", id))).
		If("attribute_not_exists(name_key) OR tgw_id = :id").Value(":id", id)
}

// release gives up the claim of the name that the gateway has.
func (g *Gateways) release(w Gateway) dynamo.Op {
	return dynamo.Delete(g.table("tgw_name"), item.Of(item.String("name_key", nameKey(w.OwnerID, w.Name)))).
		If("attribute_not_exists(name_key) OR tgw_id = :id").Value(":id", w.ID)
}
