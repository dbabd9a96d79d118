package localstack

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// archived returns the option that lets java map srv's classes from a file
// (class data sharing) in place of reading and checking 12,000 of them: a start
// of OpenSearch takes less than half of the processor time. The file belongs to
// this java and is made once, by a run that does nothing but start. Without the
// file, the server starts as it always did.
func archived(ctx context.Context, o Options, srv server, java, home string) ([]string, error) {
	info, err := os.Stat(java)
	if err != nil {
		return nil, err
	}
	key := sha256.Sum256(fmt.Appendf(nil, "%s %d %d", java, info.Size(), info.ModTime().UnixNano()))
	file := filepath.Join(home, fmt.Sprintf("classes-%x.jsa", key[:6]))
	there := func() bool { _, err := os.Stat(file); return err == nil }
	run := home + ".archive"
	if err := once(ctx, o, there, run, func() error { return archive(ctx, o, srv, java, home, file, run) }); err != nil {
		return nil, err
	}
	made, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if made.Size() == 0 { // this java makes none
		return nil, nil
	}
	return []string{"-XX:SharedArchiveFile=" + file}, nil
}

// archive makes the file, or an empty one when this java cannot. It runs the server in
// the folder run.
func archive(ctx context.Context, o Options, srv server, java, home, file, run string) error {
	fmt.Fprintf(o.Log, "preparing %s for faster starts (once)\n", srv.name)
	begin := time.Now()
	part := filepath.Join(run, "classes.jsa")
	p, err := launch(ctx, start{server: srv, java: java, home: home, options: []string{"-XX:ArchiveClassesAtExit=" + part}}, run, o.Timeout)
	if err == nil {
		p.terminate()
		select { // it writes the file now
		case <-p.done:
		case <-ctx.Done():
			p.kill()
			<-p.done
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if os.Rename(part, file) == nil {
		fmt.Fprintf(o.Log, "prepared %s in %v\n", srv.name, time.Since(begin).Round(100*time.Millisecond))
		return nil
	}
	fmt.Fprintf(o.Log, "%s keeps its usual start: this Java makes no archive of its classes\n", srv.name)
	return os.WriteFile(file, nil, 0o600)
}
