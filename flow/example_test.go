package flow_test

import (
	"context"
	"fmt"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
)

// one is a Matcher with a single route.
type one struct{ route *sluice.Route }

func (o one) Routes() []*sluice.Route { return []*sluice.Route{o.route} }
func (o one) Match(dst []*sluice.Route, rec *sluice.Record) ([]*sluice.Route, error) {
	return append(dst, o.route), nil
}

func Example() {
	ctx := context.Background()
	m := one{&sluice.Route{Name: "print", Handler: func(ctx context.Context, rec *sluice.Record) error {
		fmt.Println("handled", rec.Sequence)
		return nil
	}}}
	f := flow.Open(ctx, m, flow.Options{Order: flow.ByShard})
	last, err := f.Submit(ctx, sluice.Record{Sequence: "100000000003498069978"}, sluice.Record{Sequence: "100000000003498069979"})
	fmt.Println("submitted", last, err)
	settled, err := f.Close(ctx)
	fmt.Println("settled", settled, err)
	// Unordered output:
	// submitted 2 <nil>
	// handled 100000000003498069978
	// handled 100000000003498069979
	// settled 2 <nil>
}
