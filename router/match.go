package router

import (
	"context"
	"fmt"
	"slices"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
)

// Match appends the routes that rec takes to dst, in order of registration.
// It allocates nothing but what dst and the user's own functions need, and is
// safe for concurrent use.
//
// Its errors are permanent: rec could not be decoded, its type attribute is no
// string, the stream does not send an image that a route needs or that tells the type, or rec is redriven and a
// route refuses that, which is an error beside the routes that do not.
// A message that no route is for is one, too: nobody would see it again.
//
// When only rec lacks an image that the stream does send, the routes that need it
// are among the routes, and their handlers fail for good.
func (r *Router) Match(dst []*sluice.Route, rec *sluice.Record) ([]*sluice.Route, error) {
	t := r.fixed()
	if err := rec.Err(); err != nil {
		return dst, err
	}
	event := eventIndex(rec.EventName)
	if event < 0 {
		return dst, sluice.Permanent(fmt.Errorf("%s: unknown event name %q", where(rec), rec.EventName))
	}
	if rec.Origin == sluice.Backfilled {
		event = snapshot
	}
	var buf [128]byte
	typ, err := r.typeOf(buf[:0], rec)
	if err != nil {
		return dst, sluice.Permanent(fmt.Errorf("%s: type of the record: %w", where(rec), err))
	}
	if len(typ) == 0 {
		if err := r.untyped(t, rec, event); err != nil {
			return dst, sluice.Permanent(err)
		}
	}
	routes := t.lookup(typ, event)
	n := len(dst)
	var refused []string
	for _, rt := range routes {
		switch v := rt.decide(rec, event); {
		case v.Takes:
			dst = append(dst, &rt.Route)
		case v.Err != nil:
			return dst[:n], v.Err
		case v.Redriven:
			refused = append(refused, rt.Name)
		case rt.passedOver != nil:
			rt.passedOver(1)
		}
	}
	if refused != nil {
		return dst, sluice.Permanent(&redriveError{Routes: refused})
	}
	if event == message && len(routes) == 0 {
		if len(typ) == 0 {
			return dst, sluice.Permanent(fmt.Errorf("%s: its body has no member \"kind\" to route it by; a queue forgets what is taken from it", where(rec)))
		}
		return dst, sluice.Permanent(fmt.Errorf("%s: no route takes messages of kind %q; a queue forgets what is taken from it", where(rec), string(typ)))
	}
	if len(dst) == n && (len(r.unrouted) > 0 || r.counted != nil) {
		why := NoRoute
		switch {
		case len(routes) > 0:
			why = Filtered
		case len(typ) == 0:
			why = Untyped
		}
		if r.counted != nil {
			r.counted[why](1)
		}
		for _, f := range r.unrouted {
			f(rec, why)
		}
	}
	return dst, nil
}

// untyped is the error of a record without a type that may have one which
// nobody can see.
func (r *Router) untyped(t *table, rec *sluice.Record, event int) error {
	if !t.typed[event] || event == message || hasImage(rec) || !r.resolver.readsImage(rec.Table) {
		return nil
	}
	if view, err := sluice.ParseView(rec.ViewType); err == nil && view.Has(sluice.AnyImage) && (view == sluice.BothImages || event != insert && event != remove) {
		return fmt.Errorf("%s: the type of the record is unknown: an image tells it, and the %s record has none although the stream should send one (the record says %q)",
			where(rec), rec.EventName, rec.ViewType)
	}
	return fmt.Errorf(
		"%s: the type of the record is unknown: its attribute is to stand in an image, but the %s record came without one; "+
			"set the table's StreamViewType to NEW_AND_OLD_IMAGES (the record says %q), or let a Chain in TypeFrom end with what tells the type without images",
		where(rec), rec.EventName, rec.ViewType)
}

// typeOf appends the type of rec: the kind of a message, and what the resolver
// says of an item.
func (r *Router) typeOf(dst []byte, rec *sluice.Record) ([]byte, error) {
	if rec.EventName != sluice.Delivery {
		return r.resolver.appendType(dst, rec)
	}
	v, ok := rec.New.Lookup("kind")
	if !ok {
		return dst, nil
	}
	if v.Kind() != item.S {
		return dst, fmt.Errorf("the kind of a message is of type %v, want a string", v.Kind())
	}
	return append(dst, v.Text()...), nil
}

func (rt *route) takes(rec *sluice.Record) bool { return rt.refusedBy(rec) == "" }

// checkImages looks at the images themselves: the view type that a record
// states is not reliable in every source, and a filter that compares with an
// image that is missing would drop changes silently.
func checkImages(rt *route, rec *sluice.Record, event int) error {
	var have sluice.View
	if event == remove || rec.New.Exists() { // a removed item has no new image
		have |= sluice.NewImage
	}
	if event == insert || event == snapshot || event == message || rec.Old.Exists() { // a new item has no old one
		have |= sluice.OldImage
	}
	if have.Has(rt.reads) {
		return nil
	}
	if view, err := sluice.ParseView(rec.ViewType); err == nil && view.Has(rt.reads) {
		return sluice.Permanent(&lostImageError{fmt.Sprintf(
			"%s: route %q needs %s: the %s record does not have it although the stream should send one (the record says %q)",
			where(rec), rt.Name, imageNames(rt.reads&^have), rec.EventName, rec.ViewType)})
	}
	return sluice.Permanent(fmt.Errorf(
		"%s: route %q (%s) needs %s, but the %s record came without it; set the table's StreamViewType to %s (the record says %q)",
		where(rec), rt.Name, rt.site, imageNames(rt.reads&^have), rec.EventName, rt.Needs, rec.ViewType))
}

// lostImageError says that a single record lacks an image that its stream has, as
// some deletions of DynamoDB Local do. It concerns the route that needs the image
// alone: nothing is wrong with the stream.
type lostImageError struct{ text string }

func (e *lostImageError) Error() string { return e.text }

// withImages has h fail for good for a record that lacks an image that rt reads.
func (rt *route) withImages(h sluice.Handler) sluice.Handler {
	return func(ctx context.Context, rec *sluice.Record) error {
		event := eventIndex(rec.EventName)
		if rec.Origin == sluice.Backfilled {
			event = snapshot
		}
		if err := checkImages(rt, rec, event); err != nil {
			return err
		}
		return h(ctx, rec)
	}
}

func imageNames(v sluice.View) string {
	if v != sluice.AnyImage {
		v &= sluice.BothImages
	}
	switch v {
	case sluice.NewImage:
		return "the new image"
	case sluice.OldImage:
		return "the old image"
	case sluice.AnyImage:
		return "an image"
	}
	return "both images"
}

// redriveError says which routes refuse a redriven record. The routes that
// Match returned beside it take it.
type redriveError struct{ Routes []string }

func (e *redriveError) Error() string {
	return fmt.Sprintf("redriven record refused by %q: later changes of the item may have been handled since; if its handler does no harm then, give the route redrive: true, in a program router.Redrive()", e.Routes)
}

// where names a record for an error's reader; its payload is nobody's business.
func where(rec *sluice.Record) string {
	if rec.EventName == sluice.Delivery {
		return "message " + rec.EventID + " of queue " + rec.Table
	}
	s := "table " + rec.Table
	if rec.ShardID != "" {
		s += ", shard " + rec.ShardID
	}
	return s + ", sequence number " + string(rec.Sequence)
}

// Refuses reports whether the route of that name is among them.
func (e *redriveError) Refuses(route string) bool { return slices.Contains(e.Routes, route) }
