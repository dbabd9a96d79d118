package awserror

// CredentialsError is the error of a role that was not assumed, or of a profile
// without credentials. [Of] says what its cause means.
type CredentialsError struct {
	What string // the place, then "cannot assume role …" or "cannot use profile …"
	Err  error
	Do   string // what helps; "" if unknown
}

func (e *CredentialsError) Error() string {
	text := e.What + ": " + e.Err.Error()
	if e.Do != "" {
		text += "; " + e.Do
	}
	return text
}

func (e *CredentialsError) Unwrap() error { return e.Err }
