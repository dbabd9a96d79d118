package transitgateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/examples/internal/kit"
	"github.com/sluicehq/sluice/item"
)

// Gateway is one gateway of an owner.
type Gateway struct {
	OwnerID     string   `dynamodbav:"owner_id"`
	ID          string   `dynamodbav:"tgw_id"`     // of one owner only
	Version     int64    `dynamodbav:"version"`    // from 0, one more with each save
	CreatedAt   int64    `dynamodbav:"created_at"` // ms since 1970; never changes
	State       string   `dynamodbav:"state"`
	Name        string   `dynamodbav:"name"` // of one gateway of its owner only
	RouteTables []string `dynamodbav:"route_table_ids"`
}

// maxRouteTables is how many route tables a gateway may be attached to.
const maxRouteTables = 20

// The fence is created_at << versionBits | version. It fits into the 63 bits of
// a document's version until the year 2248.
const (
	versionBits = 20
	createdBits = 63 - versionBits

	lastVersion = 1<<versionBits - 2 // the deletion has the one after it
)

// Fence returns the number that grows with every state of a gateway, also when
// it is deleted and made again. A deletion's is that of the last state plus 1.
func Fence(it sluice.Item) (int64, error) {
	created, ok := kit.Number(it, "created_at")
	if !ok || created <= 0 || created >= 1<<createdBits {
		return 0, errors.New("created_at is missing or no time in ms between 1970 and 2248")
	}
	version, ok := kit.Number(it, "version")
	if !ok || version < 0 || version >= 1<<versionBits {
		return 0, fmt.Errorf("version is missing or no number from 0 to %d", 1<<versionBits-1)
	}
	return created<<versionBits | version, nil
}

// item is the gateway as the table holds it.
func (g Gateway) item() sluice.Item {
	data, _ := json.Marshal(map[string]any{ // of strings and numbers never fails
		"owner_id": g.OwnerID, "tgw_id": g.ID, "version": g.Version, "created_at": g.CreatedAt,
		"state": g.State, "name": g.Name, "route_table_ids": append([]string{}, g.RouteTables...),
	})
	it, err := item.FromJSON(data)
	if err != nil {
		panic(fmt.Sprintf("transitgateway: %v", err))
	}
	return it
}

func (g Gateway) key() sluice.Item { return gatewayKey(g.OwnerID, g.ID) }

func gatewayKey(ownerID, id string) sluice.Item {
	return item.Of(item.String("owner_id", ownerID), item.String("tgw_id", id))
}

// validate refuses what would make the key of something else.
func (g Gateway) validate() error {
	var errs []error
	for _, f := range []struct{ name, value, not string }{
		{"OwnerID", g.OwnerID, "#"}, {"ID", g.ID, ""}, {"Name", g.Name, ""},
	} {
		switch {
		case f.value == "":
			errs = append(errs, fmt.Errorf("%s is empty", f.name))
		case f.not != "" && strings.Contains(f.value, f.not):
			errs = append(errs, fmt.Errorf("%s %q holds %q, which separates it from a name", f.name, f.value, f.not))
		}
	}
	if n := len(g.RouteTables); n > maxRouteTables {
		errs = append(errs, fmt.Errorf("RouteTables are %d, want %d at most", n, maxRouteTables))
	}
	for i, rtb := range g.RouteTables {
		if rtb == "" || slices.Contains(g.RouteTables[:i], rtb) {
			errs = append(errs, fmt.Errorf("RouteTables[%d] is %q, want each once and none empty", i, rtb))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return sluice.Permanent(fmt.Errorf("gateway %s of %s: %w", g.ID, g.OwnerID, err))
	}
	return nil
}
