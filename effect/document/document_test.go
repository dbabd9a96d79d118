package document

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestError(t *testing.T) {
	down := errors.New("connection refused")
	for _, tt := range []struct {
		err     *Error
		text    string
		details map[string]string
	}{
		{
			NewError(Op{Action: Put, Index: "tgw", ID: `a|"b"`, Routing: "r", Fence: Newer, Version: 7}, 400, "mapper_parsing_exception", "failed to parse field [n] of type [long]. Preview of field's value: 'secret'"),
			`index of a document in "tgw": status 400: mapper_parsing_exception: failed to parse field [n] of type [long].`,
			map[string]string{"action": "index", "index": "tgw", "id": `a|"b"`, "routing": "r", "version": "7", "version_type": "external", "status": "400", "type": "mapper_parsing_exception", "reason": "failed to parse field [n] of type [long]. Preview of field's value: 'secret'"},
		},
		{ // its bytes as numbers
			NewError(Op{Action: Put, Index: "tgw", ID: "a"}, 400, "illegal_argument_exception", `Document contains at least one immense term in field="k" (whose UTF8 encoding is longer than the max length 32766). The prefix of the first immense term is: '[115, 101]...', original message: too long`),
			`index of a document in "tgw": status 400: illegal_argument_exception: Document contains at least one immense term in field="k" (whose UTF8 encoding is longer than the max length 32766).`,
			map[string]string{"action": "index", "index": "tgw", "id": "a", "status": "400", "type": "illegal_argument_exception", "reason": `Document contains at least one immense term in field="k" (whose UTF8 encoding is longer than the max length 32766). The prefix of the first immense term is: '[115, 101]...', original message: too long`},
		},
		{ // of a pipeline
			NewError(Op{Action: Put, Index: "tgw", ID: "a"}, 400, "illegal_argument_exception", "Provided Grok expressions do not match field value: [secret]"),
			`index of a document in "tgw": status 400: illegal_argument_exception: Provided Grok expressions do not match`,
			map[string]string{"action": "index", "index": "tgw", "id": "a", "status": "400", "type": "illegal_argument_exception", "reason": "Provided Grok expressions do not match field value: [secret]"},
		},
		{
			&Error{Action: Delete, Ref: Ref{Index: "tgw", ID: "a"}, Err: down},
			`delete of a document in "tgw": connection refused`,
			map[string]string{"action": "delete", "index": "tgw", "id": "a"},
		},
		{ // keys, in a name and in reasons
			NewError(Op{Action: Put, Index: "acme", IndexTemplate: "{tenant}", ID: "a", Fence: Newer}, 409, "version_conflict_engine_exception", "[a]: version conflict, document 'a' of [acme][0] and [acme/uuid]"),
			`index of a document in "{tenant}": status 409: version_conflict_engine_exception: […]: version conflict, document '…' of [{tenant}][0] and [{tenant}/uuid]`,
			map[string]string{"action": "index", "index": "acme", "id": "a", "version": "0", "version_type": "external", "status": "409", "type": "version_conflict_engine_exception", "reason": "[a]: version conflict, document 'a' of [acme][0] and [acme/uuid]"},
		},
	} {
		if got := tt.err.Error(); got != tt.text {
			t.Errorf("%s\nwant %s", got, tt.text)
		}
		if diff := cmp.Diff(tt.details, tt.err.Details()); diff != "" {
			t.Error(diff)
		}
	}
	if !errors.Is(&Error{Err: down}, down) {
		t.Error("the cause is hidden")
	}
}

func TestNamesOfTheBulkAPI(t *testing.T) {
	got := []string{Put.String(), Delete.String(), NoFence.String(), Newer.String(), NewerOrEqual.String(), Action(9).String(), Fence(9).String()}
	if diff := cmp.Diff([]string{"index", "delete", "internal", "external", "external_gte", "Action(9)", "Fence(9)"}, got); diff != "" {
		t.Error(diff)
	}
}
