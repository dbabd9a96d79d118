package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluicehq/sluice/internal/accounts"
	"github.com/sluicehq/sluice/internal/statestore"
)

// findState returns the absolute path of the state file, or the table as it is. It
// refuses a file whose folder does not exist. boltstate would make the folder. That
// would hide a wrong path, or a disk that is not mounted, and the daemon would begin
// anew.
func findState(place string) (string, error) {
	if _, ok := statestore.Table(place); ok {
		return place, nil
	}
	path, err := filepath.Abs(place)
	if err != nil {
		return place, nil // opening the file returns the error
	}
	if _, err = os.Stat(filepath.Dir(path)); errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("--state (%s): the folder %s of the state file does not exist: correct the path, mount the disk, or make the folder (mkdir -p %[2]s), where a new file begins without positions",
			envOf["state"], filepath.Dir(path))
	}
	return path, nil
}

// CheckPark returns an error if a daemon whose state is at a place cannot park records
// and items in that way.
func CheckPark(park, place string) error {
	if _, inTable := statestore.Table(place); inTable && park == "item" {
		return errors.New("item needs a state file: workers that share a state table do not know which items the others hold. Use record")
	}
	return nil
}

func (o Options) open(ctx context.Context, services func(string) aws.Config) (statestore.Store, error) {
	return statestore.Open(ctx, o.State, statestore.Options{
		LockTimeout: o.lockTimeout,
		AWS:         func() (aws.Config, error) { return services(accounts.State), nil },
	})
}
