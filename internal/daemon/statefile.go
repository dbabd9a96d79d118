package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// checkStateFolder refuses a state file whose folder is not there. Made for it, as
// boltstate would, it hid a path with a mistake, or a disk that is not mounted, and
// the daemon began anew beside its positions.
func checkStateFolder(path string) error {
	path, err := filepath.Abs(path)
	if err == nil {
		_, err = os.Stat(filepath.Dir(path))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--state (%s): there is no folder %s for the state file: correct the path, mount the disk, or make the folder (mkdir -p %[2]s), where a new file begins without positions",
			envOf["state"], filepath.Dir(path))
	}
	return nil // what else is wrong shows when the file is opened
}
