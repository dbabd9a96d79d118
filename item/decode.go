package item

import "errors"

// Decode fills into, a pointer to a struct or map, by `dynamodbav` tags, with
// the rules of the SDK's attributevalue package.
func (it Item) Decode(into any) error { return errors.New("not built") }
