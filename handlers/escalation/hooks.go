package escalation

// Hooks are called as things happen; nil ones are passed over. They must be fast,
// must not block, and may be called concurrently.
type Hooks struct {
	// Called is called after each call of Contact; outcome is "" when it is to be
	// repeated.
	Called func(outcome string)
	// Alarm is called for each alarm that was raised.
	Alarm func()
	// Problem is called whenever a bad step, or a bad attribute of an escalation, is
	// passed over.
	Problem func()
}

func (h Hooks) withDefaults() Hooks {
	if h.Called == nil {
		h.Called = func(string) {}
	}
	if h.Alarm == nil {
		h.Alarm = func() {}
	}
	if h.Problem == nil {
		h.Problem = func() {}
	}
	return h
}
