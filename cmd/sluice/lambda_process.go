package main

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/sluicehq/sluice/internal/runtimeapi"
)

// functionCommand is the function that is meant, with the environment that it
// would have under Lambda.
func (c *cli) functionCommand(ctx context.Context, o invokeOptions, region string) (runtimeapi.Command, error) {
	command := runtimeapi.Command{InitTimeout: o.timeout}
	env := functionEnv(os.Environ())
	if o.bootstrap != "" {
		path, err := bootstrapPath(o.bootstrap)
		if err != nil {
			return command, err
		}
		command.Path, command.Dir = path, filepath.Dir(path)
		env = append(env, "LAMBDA_TASK_ROOT="+command.Dir)
	} else {
		if _, err := c.load(); err != nil {
			if absent := (*noFileError)(nil); errors.As(err, &absent) {
				err = fmt.Errorf("%w; or name a built function by --bootstrap", err)
			}
			return command, err
		}
		name, _ := c.path()
		path, err := filepath.Abs(name)
		if err != nil {
			return command, err
		}
		if command.Path, err = os.Executable(); err != nil {
			return command, err
		}
		command.Args = []string{"lambda", "function"}
		env = append(env, configEnv+"="+path, "LAMBDA_TASK_ROOT="+filepath.Dir(path))
	}
	// As under Lambda, credentials and Region are variables.
	services, _, err := c.accountsMaybe(ctx, nil)
	if err != nil {
		return command, err
	}
	aws := services("")
	if aws.Region != "" {
		region = aws.Region
	}
	if region != "" {
		env = append(env, "AWS_REGION="+region)
	}
	if keys, err := aws.Credentials.Retrieve(ctx); err == nil {
		env = append(env, "AWS_ACCESS_KEY_ID="+keys.AccessKeyID, "AWS_SECRET_ACCESS_KEY="+keys.SecretAccessKey, "AWS_SESSION_TOKEN="+keys.SessionToken)
	} else {
		fmt.Fprintln(c.stderr, "warning: there are no AWS credentials, and the function has none: give them by AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE; local servers take any")
	}
	command.Env = env
	return command, nil
}

// functionEnv removes from an environment the variables of Lambda, and those that
// would stop the function from writing metrics.
func functionEnv(all []string) []string {
	return slices.DeleteFunc(all, func(one string) bool {
		name, _, _ := strings.Cut(one, "=")
		return strings.HasPrefix(name, "AWS_LAMBDA_") || strings.HasPrefix(name, "_LAMBDA_") || name == "SLUICE_EMF"
	})
}

func bootstrapPath(name string) (string, error) {
	path, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		path = filepath.Join(path, "bootstrap")
		info, err = os.Stat(path)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("--bootstrap: there is no %s: make lambda builds deploy/lambda/build/bootstrap", path)
	case err != nil:
		return "", fmt.Errorf("--bootstrap: %w", err)
	case info.IsDir():
		return "", fmt.Errorf("--bootstrap: %s is a folder", path)
	case info.Mode()&0o111 == 0:
		return "", fmt.Errorf("--bootstrap: %s may not be run: chmod +x %[1]s", path)
	}
	return path, nil
}

// startError says what to do about a function that takes no event.
func startError(path string, timeout time.Duration, err error) error {
	failed := (*runtimeapi.InitError)(nil)
	switch {
	case errors.Is(err, syscall.ENOEXEC):
		return fmt.Errorf("%s does not run on this machine, which is %s/%s%s: build one for it, such as by CGO_ENABLED=0 go build -tags lambda.norpc -o bootstrap ./cmd/sluice-lambda; the one that you deploy stays as it is", path, runtime.GOOS, runtime.GOARCH, builtFor(path))
	case errors.As(err, &failed):
		return err
	case errors.Is(err, runtimeapi.ErrExited):
		return fmt.Errorf("the function ended before it took the event: see its log: %w", err)
	case errors.Is(err, runtimeapi.ErrTimedOut):
		return fmt.Errorf("the function did not ask for an event within %v: is %s a Lambda function? --timeout gives it longer", timeout, path)
	}
	return err
}

// builtFor says for which machine a Linux program was built, if it is one.
func builtFor(path string) string {
	f, err := elf.Open(path)
	if err != nil {
		return ": it is no program of Linux"
	}
	defer f.Close() //nolint:errcheck // it was only read
	machine := strings.ToLower(strings.TrimPrefix(f.Machine.String(), "EM_"))
	switch f.Machine {
	case elf.EM_AARCH64:
		machine = "arm64"
	case elf.EM_X86_64:
		machine = "amd64"
	}
	return ": it is for linux/" + machine
}
