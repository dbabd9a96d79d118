package warehouse

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/streamtest"
)

// A field of package.json becomes its attribute of the data model. Fields without an
// attribute, or of another type, are in extended.
func TestAttributesOfPackages(t *testing.T) {
	for manifest, want := range map[string]string{
		`{"name":"a","version":"1.0.0"}`: `{}`,
		`{"description":"d","main":"m.js","gitHead":"abc","keywords":["b","a","b"],"bundledDependencies":["x"],"distTags":{"latest":"1.0.0"},
		  "envs":{"dev":"1.0.0"},"metadata":{"a":1},"config":{"port":8080},"repository":{"type":"git"},"dependencies":{"x":"1"},
		  "devDependencies":{"y":"2"},"peerDependencies":{"z":"3"},"optionalDependencies":{"o":"4"},"license":"MIT","scripts":{"test":"t"}}`: `{"bundled_dependencies":["x"],"config":{"port":8080},"dependencies":{"x":"1"},"description":"d","dev_dependencies":{"y":"2"},"dist_tags":{"latest":"1.0.0"},` +
			`"envs":{"dev":"1.0.0"},"extended":{"license":"MIT","scripts":{"test":"t"}},"git_head":"abc","keywords":["a","b"],"main":"m.js","metadata":{"a":1},"optional_dependencies":{"o":"4"},"peer_dependencies":{"z":"3"},"repository":{"type":"git"}}`,
		`{"keywords":"one","bundleDependencies":true,"main":["m"],"dist-tags":{"next":"2"},"config":null,"devDependencies":[],"repository":"github:a/b","keys":[]}`: `{"dist_tags":{"next":"2"},"extended":{"bundleDependencies":true,"devDependencies":[],"keys":[],"keywords":"one","main":["m"]},"repository":{"type":"git","url":"github:a/b"}}`,
		`{"keywords":[],"bundleDependencies":["a"],"bundledDependencies":["b"]}`:                                                                                    `{"bundled_dependencies":["a"],"extended":{"bundledDependencies":["b"],"keywords":[]}}`,
		`{"keywords":["a",1]}`: `{"extended":{"keywords":["a",1]}}`,
	} {
		m := newMemory(t)
		m.put("version", publish("1.0.0", manifest))
		m.run()
		got := m.state("package")
		fields, err := item.FromJSON([]byte(want))
		if err != nil {
			t.Fatal(err)
		}
		fields = fields.With(item.String("name", "email"), item.String("version", "1.0.0"))
		if want = "package " + string(fields.AppendJSON(nil, item.JSON{SortedKeys: true})) + "\n"; got != want {
			t.Errorf("%s\n%swant %s", manifest, got, want)
		}
	}
}

func publish(version, value string) sluice.Item {
	return item.Of(item.String("name", "email"), item.String("version", version), item.String("value", value))
}

// A package has the fields of its highest version, for any order of versions. The
// dependents of all versions add up.
func TestVersionsInAnyOrder(t *testing.T) {
	versions := []sluice.Item{
		publish("2.0.10", `{"description":"old","keywords":["k"],"license":"MIT","dependencies":{"abacus":"1"}}`),
		publish("2.1.0-rc.1", `{"main":"m.js"}`),
		publish("2.1.0+a", `{"description":"a","dependencies":{"layout":"3","button":"1"}}`),
		publish("2.1.0+b", `{"description":"b","dependencies":{"layout":"3","button":"1"}}`),
	}
	want := `package {"dependencies":{"button":"1","layout":"3"},"description":"b","name":"email","version":"2.1.0+b"}
dependent {"dependents":["email"],"name":"abacus"}
dependent {"dependents":["email"],"name":"button"}
dependent {"dependents":["email"],"name":"layout"}
dependent_of {"dependent_of":"button","pkg":"email","version":"2.1.0+b"}
`
	for order := range permutations(len(versions)) {
		m := newMemory(t)
		for _, i := range order {
			m.put("version", versions[i])
			m.run()
		}
		if got := m.state("package", "dependent", "dependent_of"); got != want {
			t.Fatalf("in the order %v:\n%s", order, got)
		}
	}
}

func TestBadVersionsAreParked(t *testing.T) {
	m := newMemory(t)
	for _, tt := range []struct{ version, value, want string }{
		{"1.0.0", "{", "value: it is no JSON object"},
		{"1.0.0", "[]", "value: it is no JSON object but an array"},
		{"one", "{}", "no semantic version"},
		{"", "{}", "no semantic version"},
		{"1.0.0", `{"dependencies":[]}`, "its dependencies are no object"},
	} {
		rec := streamtest.Insert(m.table("version"), item.Of(item.String("name", "email"), item.String("version", tt.version), item.String("value", tt.value)),
			streamtest.WithKeys("name", "version"))
		if err := m.onVersion(t.Context(), &rec); !sluice.IsPermanent(err) || !strings.Contains(fmt.Sprint(err), tt.want) {
			t.Errorf("%q %s: %v, want %s", tt.version, tt.value, err, tt.want)
		}
	}
}
