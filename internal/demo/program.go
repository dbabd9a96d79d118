package demo

import (
	"os"
	"path/filepath"
)

// programMain is the program that a user of the manhunt example would run.
const programMain = "./examples/manhunt/main"

// daemonArgs are the flags of a user who wants to see every record.
func (d *demo) daemonArgs() []string {
	return []string{
		"--start", "TRIM_HORIZON",
		"--state", filepath.Join(d.dir, "state.db"),
		"--listen", "off",
		"--log-format", "json", "--log-level", "debug",
	}
}

// settings are the variables that the program needs as daemon and as function.
func (d *demo) settings(queue string) []string {
	return append(d.world.stack.Environ(),
		"SLUICE_ENDPOINT_DYNAMODB="+d.world.stack.DynamoDB,
		"SLUICE_ENDPOINT_SQS="+d.world.stack.SQS,
		"SLUICE_TABLES="+d.table,
		"MANHUNT_QUEUE="+queue,
		"MANHUNT_WATCH_QUEUE="+d.watch,
	)
}

// daemonEnv is that of a process: the caller's, and the settings.
func (d *demo) daemonEnv(queue string) []string { return append(os.Environ(), d.settings(queue)...) }
