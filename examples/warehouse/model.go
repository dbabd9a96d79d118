package warehouse

// Status is the status of a build. Dates are ISO 8601 here and everywhere. The
// dates of a status are the smallest and the largest of its events.
type Status struct {
	Key      string `dynamodbav:"key" json:"key"` // pkg!env!version
	Package  string `dynamodbav:"pkg" json:"pkg"`
	Env      string `dynamodbav:"env" json:"env"`
	Version  string `dynamodbav:"version" json:"version"`
	Previous string `dynamodbav:"previous_version" json:"previous_version,omitempty"`
	Total    int64  `dynamodbav:"total" json:"total,omitempty"` // of locales
	Error    bool   `dynamodbav:"error" json:"error"`
	Complete bool   `dynamodbav:"complete" json:"complete"`
	Created  string `dynamodbav:"create_date" json:"create_date,omitempty"`
	Updated  string `dynamodbav:"update_date" json:"update_date,omitempty"`
}

// StatusHead is the last queued version of a package in an environment. Its dates
// are those of all events that queued a version there.
type StatusHead struct {
	Key      string `dynamodbav:"key" json:"key"` // pkg!env
	Package  string `dynamodbav:"pkg" json:"pkg"`
	Env      string `dynamodbav:"env" json:"env"`
	Version  string `dynamodbav:"version" json:"version"`
	Previous string `dynamodbav:"previous_version" json:"previous_version,omitempty"`
	Total    int64  `dynamodbav:"total" json:"total,omitempty"` // of the version's locales
	Created  string `dynamodbav:"create_date" json:"create_date,omitempty"`
	Updated  string `dynamodbav:"update_date" json:"update_date,omitempty"`
}

// Build is one build of a package in one locale.
type Build struct {
	Key          string         `dynamodbav:"key" json:"key"` // name!env!version
	Locale       string         `dynamodbav:"locale" json:"locale"`
	ID           string         `dynamodbav:"build_id" json:"build_id"`
	PreviousID   string         `dynamodbav:"previous_build_id" json:"previous_build_id,omitempty"`
	RollbackIDs  map[string]any `dynamodbav:"rollback_build_ids" json:"rollback_build_ids,omitempty"`
	Name         string         `dynamodbav:"name" json:"name"`
	Env          string         `dynamodbav:"env" json:"env"`
	Version      string         `dynamodbav:"version" json:"version"`
	Created      string         `dynamodbav:"create_date" json:"create_date,omitempty"`
	CDN          string         `dynamodbav:"cdn_url" json:"cdn_url,omitempty"`
	Fingerprints []string       `dynamodbav:"fingerprints" json:"fingerprints,omitempty"`
	Artifacts    []string       `dynamodbav:"artifacts" json:"artifacts,omitempty"`
	Recommended  []string       `dynamodbav:"recommended" json:"recommended,omitempty"`
}

// BuildHead is the largest build of a package in an environment and a locale, by
// (create_date, build_id). Its key is name!env. Created and Updated are the
// smallest and the largest date of the builds that it remembers, 16 at most.
type BuildHead struct {
	Build
	Updated string `dynamodbav:"update_date" json:"update_date,omitempty"`
}

// BuildFile is one file of a build.
type BuildFile struct {
	Fingerprint string `dynamodbav:"fingerprint" json:"fingerprint"`
	BuildID     string `dynamodbav:"build_id" json:"build_id"`
	URL         string `dynamodbav:"url" json:"url"`
	Created     string `dynamodbav:"create_date" json:"create_date,omitempty"`
	Env         string `dynamodbav:"env" json:"env,omitempty"`
	Locale      string `dynamodbav:"locale" json:"locale,omitempty"`
	Name        string `dynamodbav:"name" json:"name,omitempty"`
	Version     string `dynamodbav:"version" json:"version,omitempty"`
	Extension   string `dynamodbav:"extension" json:"extension,omitempty"`
	Filename    string `dynamodbav:"filename" json:"filename"`
}

// Version is one version of a package.
type Version struct {
	Name    string `dynamodbav:"name" json:"name"`
	Version string `dynamodbav:"version" json:"version"`
	Value   string `dynamodbav:"value" json:"value"` // package.json
}

// Package is what the highest version of a package says in its package.json.
type Package struct {
	Name                 string         `dynamodbav:"name" json:"name"`
	Version              string         `dynamodbav:"version" json:"version"`
	Description          string         `dynamodbav:"description" json:"description,omitempty"`
	Main                 string         `dynamodbav:"main" json:"main,omitempty"`
	GitHead              string         `dynamodbav:"git_head" json:"git_head,omitempty"`
	Keywords             []string       `dynamodbav:"keywords" json:"keywords,omitempty"`
	BundledDependencies  []string       `dynamodbav:"bundled_dependencies" json:"bundled_dependencies,omitempty"`
	DistTags             map[string]any `dynamodbav:"dist_tags" json:"dist_tags,omitempty"`
	Envs                 map[string]any `dynamodbav:"envs" json:"envs,omitempty"`
	Metadata             map[string]any `dynamodbav:"metadata" json:"metadata,omitempty"`
	Config               map[string]any `dynamodbav:"config" json:"config,omitempty"`
	Repository           map[string]any `dynamodbav:"repository" json:"repository,omitempty"`
	Dependencies         map[string]any `dynamodbav:"dependencies" json:"dependencies,omitempty"`
	DevDependencies      map[string]any `dynamodbav:"dev_dependencies" json:"dev_dependencies,omitempty"`
	PeerDependencies     map[string]any `dynamodbav:"peer_dependencies" json:"peer_dependencies,omitempty"`
	OptionalDependencies map[string]any `dynamodbav:"optional_dependencies" json:"optional_dependencies,omitempty"`
	Extended             map[string]any `dynamodbav:"extended" json:"extended,omitempty"` // all else
}

// ReleaseLine is one released version with its successors.
type ReleaseLine struct {
	Key        string                 `dynamodbav:"key" json:"key"` // pkg!version
	Package    string                 `dynamodbav:"pkg" json:"pkg"`
	Version    string                 `dynamodbav:"version" json:"version"`
	Previous   string                 `dynamodbav:"previous_version" json:"previous_version,omitempty"`
	Dependents []ReleaseLineDependent `dynamodbav:"-" json:"dependents,omitempty"` // by name
}

// ReleaseLineDependent is a package that follows a release line.
type ReleaseLineDependent struct {
	Key              string `dynamodbav:"key" json:"-"` // pkg!version of the line
	Dependent        string `dynamodbav:"dependent" json:"dependent"`
	Package          string `dynamodbav:"pkg" json:"pkg,omitempty"`
	Version          string `dynamodbav:"version" json:"version,omitempty"`
	Previous         string `dynamodbav:"previous_version" json:"previous_version,omitempty"`
	DependentVersion string `dynamodbav:"dependent_version" json:"dependent_version,omitempty"`
}

// ReleaseLineHead is the newest release line of a package.
type ReleaseLineHead struct {
	Package  string `dynamodbav:"pkg" json:"pkg"`
	Version  string `dynamodbav:"version" json:"version"`
	Previous string `dynamodbav:"previous_version" json:"previous_version,omitempty"`
}
