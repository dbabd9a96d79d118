package router

import (
	"context"
	"fmt"
	"slices"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/views"
	"github.com/sluicehq/sluice/item"
)

// Match appends the routes of rec to dst, in order of registration. It is safe for
// concurrent use. It allocates only for dst and in the user's own functions.
//
// Its errors are permanent:
//   - rec could not be decoded, or its type attribute is not a string.
//   - The stream lacks an image that a route needs, or that has the type.
//   - rec is redriven and a route refuses that. Match then also returns the routes
//     that accept it.
//   - No route takes a message: the queue would delete it unseen.
//
// If only rec lacks an image that the stream normally sends, Match also returns
// the routes that need it, and their handlers fail for good.
func (r *Router) Match(dst []*sluice.Route, rec *sluice.Record) ([]*sluice.Route, error) {
	t := r.fixed()
	if err := rec.Err(); err != nil {
		return dst, err
	}
	var buf [128]byte
	typ, event, err := r.classify(t, buf[:0], rec)
	if err != nil {
		return dst, sluice.Permanent(err)
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

// classify returns the type of rec, in the memory of dst, and the index of its event.
func (r *Router) classify(t *table, dst []byte, rec *sluice.Record) (typ []byte, event int, err error) {
	if event = eventOf(rec); event < 0 {
		return nil, event, fmt.Errorf("%s: unknown event name %q", where(rec), rec.EventName)
	}
	if typ, err = r.typeOf(dst, rec); err != nil {
		return nil, event, fmt.Errorf("%s: type of the record: %w", where(rec), err)
	}
	if len(typ) == 0 {
		err = r.untyped(t, rec, event)
	}
	return typ, event, err
}

// untyped is the error of a record whose type may be in a missing image.
func (r *Router) untyped(t *table, rec *sluice.Record, event int) error {
	if !t.typed[event] || event == message || hasImage(rec) || !r.resolver.readsImage(rec.Table) {
		return nil
	}
	if view, err := views.Parse(rec.ViewType); err == nil && view.Has(item.AnyImage) && (view == item.BothImages || event != insert && event != remove) {
		return fmt.Errorf("%s: the type of the record is unknown: an image tells it, and the %s record has none although the stream should send one (the record says %q)",
			where(rec), rec.EventName, rec.ViewType)
	}
	return fmt.Errorf(
		"%s: the type of the record is unknown: its attribute is to stand in an image, but the %s record came without one; "+
			"set the table's StreamViewType to NEW_AND_OLD_IMAGES (the record says %q), or let a Chain in TypeFrom end with what tells the type without images",
		where(rec), rec.EventName, rec.ViewType)
}

// typeOf appends the type of rec: the kind of a message, or the resolver's type of
// an item.
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

// checkImages checks the images themselves. Some sources state a wrong view type,
// and a filter that compares with a missing image would silently drop changes.
func checkImages(rt *route, rec *sluice.Record, event int) error {
	var have item.View
	if event == remove || rec.New.Exists() { // a removed item has no new image
		have |= item.NewImage
	}
	if event == insert || event == snapshot || event == message || rec.Old.Exists() { // a new item has no old one
		have |= item.OldImage
	}
	if have.Has(rt.reads) {
		return nil
	}
	if view, err := views.Parse(rec.ViewType); err == nil && view.Has(rt.reads) {
		return sluice.Permanent(&lostImageError{fmt.Sprintf(
			"%s: route %q needs %s: the %s record does not have it although the stream should send one (the record says %q)",
			where(rec), rt.Name, imageNames(rt.reads&^have), rec.EventName, rec.ViewType)})
	}
	return sluice.Permanent(fmt.Errorf(
		"%s: route %q (%s) needs %s, but the %s record came without it; set the table's StreamViewType to %s (the record says %q)",
		where(rec), rt.Name, rt.site, imageNames(rt.reads&^have), rec.EventName, rt.Needs, rec.ViewType))
}

// lostImageError says that a single record lacks an image that its stream sends,
// as some deletions of DynamoDB Local do. It fails only the routes that need the
// image.
type lostImageError struct{ text string }

func (e *lostImageError) Error() string { return e.text }

// withImages makes h fail for good for a record that lacks an image that rt reads.
func (rt *route) withImages(h sluice.Handler) sluice.Handler {
	return func(ctx context.Context, rec *sluice.Record) error {
		if err := checkImages(rt, rec, eventOf(rec)); err != nil {
			return err
		}
		return h(ctx, rec)
	}
}

func imageNames(v item.View) string {
	if v != item.AnyImage {
		v &= item.BothImages
	}
	switch v {
	case item.NewImage:
		return "the new image"
	case item.OldImage:
		return "the old image"
	case item.AnyImage:
		return "an image"
	}
	return "both images"
}

// redriveError lists the routes that refuse a redriven record. Match returns the
// accepting routes beside it.
type redriveError struct{ Routes []string }

func (e *redriveError) Error() string {
	return fmt.Sprintf("redriven record refused by %q: later changes of the item may have been handled since; if its handler does no harm then, give the route redrive: true, in a program router.Redrive()", e.Routes)
}

// where identifies a record in an error, without its data.
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

// Refuses reports whether the error lists the route of that name.
func (e *redriveError) Refuses(route string) bool { return slices.Contains(e.Routes, route) }
