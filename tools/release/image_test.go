package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/match"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// loadImage unpacks the layout and returns the image of a processor.
func loadImage(t *testing.T, r *release, arch string) v1.Image {
	t.Helper()
	folder := t.TempDir()
	unpack(t, bytes.NewReader(read(t, r.path("image.tar"))), folder)
	p, err := layout.FromPath(folder)
	if err != nil {
		t.Fatal(err)
	}
	all, err := p.ImageIndex()
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(all); err != nil {
		t.Fatal(err)
	}
	m, err := all.IndexManifest()
	if err != nil || len(m.Manifests) != 1 {
		t.Fatalf("%+v: %v", m, err)
	}
	index, err := all.ImageIndex(m.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	images, err := imagesOf(index, arch)
	if err != nil || len(images) != 1 {
		t.Fatalf("%d images for %s: %v", len(images), arch, err)
	}
	return images[0]
}

func imagesOf(index v1.ImageIndex, arch string) (images []v1.Image, err error) {
	m, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	for _, d := range m.Manifests {
		if match.Platforms(v1.Platform{OS: "linux", Architecture: arch})(d) {
			img, err := index.Image(d.Digest)
			if err != nil {
				return nil, err
			}
			images = append(images, img)
		}
	}
	return images, nil
}

// unpack keeps modes, and owners where it may.
func unpack(t *testing.T, archive io.Reader, to string) {
	t.Helper()
	files := unTar(t, archive)
	for name, e := range files {
		path := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // of an image
			t.Fatal(err)
		}
		var err error
		if strings.HasSuffix(name, "/") {
			err = os.MkdirAll(path, 0o755) //nolint:gosec // of an image
		} else {
			err = os.WriteFile(path, e.data, 0o600)
		}
		if err == nil {
			err = os.Chmod(path, e.FileInfo().Mode().Perm())
		}
		if err == nil && os.Getuid() == 0 {
			err = os.Chown(path, e.Uid, e.Gid)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestImagesAreNotRootsAndHaveCertificatesAndZones(t *testing.T) {
	r := latest(t)
	for _, arch := range []string{"amd64", "arm64"} {
		img := loadImage(t, r, arch)
		c, err := img.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if c.Architecture != arch || c.Config.User != "65532:65532" || c.Config.StopSignal != "SIGTERM" || !c.Created.Equal(r.at) {
			t.Errorf("%+v", c)
		}
		flat := mutate.Extract(img)
		files := unTar(t, flat)
		if err := flat.Close(); err != nil {
			t.Fatal(err)
		}
		if s := files["var/lib/sluice/"]; s == nil || s.Uid != nobody || s.Gid != nobody || s.Mode != 0o700 {
			t.Errorf("the folder of the state: %+v", s)
		}
		if n := bytes.Count(files["etc/ssl/certs/ca-certificates.crt"].data, []byte("BEGIN CERTIFICATE")); n < 50 {
			t.Errorf("%d certificates", n)
		}
		if files["usr/share/zoneinfo/Europe/Berlin"] == nil || files["usr/local/bin/sluice"] == nil || files["bin/sh"] != nil {
			t.Error("no time zones, no program, or a shell")
		}
	}
}

// The image's program runs as its user, below a root that nobody can write, with the
// state in a mounted folder. It handles a record, and SIGTERM drains it.
func TestTheImageRuns(t *testing.T) {
	r := latest(t)
	img := loadImage(t, r, runtime.GOARCH)
	c, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	base, err := os.MkdirTemp("", "sluice-image") //nolint:usetesting // the image's user passes through, unlike t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	root, volume := filepath.Join(base, "root"), filepath.Join(base, "state")
	flat := mutate.Extract(img)
	unpack(t, flat, root)
	_ = flat.Close()
	if err := os.Mkdir(volume, 0o700); err != nil {
		t.Fatal(err)
	}
	configuration := "source: {tables: [orders], start: TRIM_HORIZON}\nentityType: {key: {attribute: pk, pattern: \"{type}#**\"}}\nroutes:\n  - {name: seen, on: [\"order#*\"], log: {}}\n"
	if err := os.WriteFile(filepath.Join(root, "etc/sluice/sluice.yaml"), []byte(configuration), 0o644); err != nil { //nolint:gosec // of an image
		t.Fatal(err)
	}
	service := httptest.NewServer(streamsOfOneRecord())
	t.Cleanup(service.Close)

	cmd := sandbox(t, root, volume, append(c.Config.Entrypoint, c.Config.Cmd...))
	cmd.Env = append(c.Config.Env, "SLUICE_LISTEN=127.0.0.1:"+freePort(t), "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=x", "AWS_SECRET_ACCESS_KEY=x", "SLUICE_ENDPOINT_DYNAMODB="+service.URL)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var logged strings.Builder
	terminated := false
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		fmt.Fprintln(&logged, lines.Text())
		if !terminated && strings.Contains(lines.Text(), `"route":"seen"`) {
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			terminated = true
		}
	}
	if err := cmd.Wait(); err != nil || !terminated {
		t.Fatalf("the program ended by %v, after SIGTERM %v:\n%s", err, terminated, logged.String())
	}
	if text := logged.String(); !strings.Contains(text, `"msg":"stopping`) || !strings.Contains(text, `"msg":"stopped"`) {
		t.Errorf("SIGTERM did not drain:\n%s", text)
	}
	info, err := os.Stat(filepath.Join(volume, "state.db"))
	if err != nil {
		t.Fatalf("no state: %v\n%s", err, logged.String())
	}
	if owner := info.Sys().(*syscall.Stat_t).Uid; os.Getuid() == 0 && owner != nobody {
		t.Errorf("the state is of user %d", owner)
	}
}

// sandbox runs args as the image's user below root. The last process is the program
// itself, which gets signals.
func sandbox(t *testing.T, root, volume string, args []string) *exec.Cmd {
	t.Helper()
	// It has its deadline from go test -timeout.
	ctx := context.WithoutCancel(t.Context())
	if os.Getuid() != 0 {
		bwrap, err := exec.LookPath("bwrap")
		if err != nil {
			t.Fatal("THE IMAGE WAS NOT RUN: that takes root, or bubblewrap (apt-get install bubblewrap)")
		}
		return exec.CommandContext(ctx, bwrap, append([]string{
			"--unshare-user", "--uid", fmt.Sprint(nobody), "--gid", fmt.Sprint(nobody), "--die-with-parent",
			"--ro-bind", root, "/", "--bind", volume, "/" + state, "--chdir", "/" + state,
		}, args...)...)
	}
	if err := os.Chmod(filepath.Dir(root), 0o755); err != nil { //nolint:gosec // the image's user passes through
		t.Fatal(err)
	}
	if err := os.Chown(volume, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	// The shell becomes the program, by way of setpriv and chroot.
	const script = `set -e
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount --bind "$1" "$1"
mount --bind "$2" "$1/` + state + `"
mount -o remount,bind,ro "$1"
if touch "$1/tmp/x" 2>/dev/null; then echo "the root can be written" >&2; exit 1; fi
root=$1
shift 2
cd "$root/` + state + `"
exec setpriv --no-new-privs --bounding-set=-all,+sys_chroot,+setuid,+setgid chroot --userspec=65532:65532 "$root" "$@"`
	return exec.CommandContext(ctx, "unshare", append([]string{"--mount", "--ipc", "--uts", "sh", "-c", script, "sh", root, volume}, args...)...)
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// streamsOfOneRecord stands in for DynamoDB: a table, whose stream has one shard with
// one record.
func streamsOfOneRecord() http.Handler {
	const arn = "arn:aws:dynamodb:us-east-1:000000000000:table/orders/stream/2026-01-01T00:00:00.000"
	answers := map[string]string{
		"DescribeTable": `{"Table":{"TableName":"orders","TableStatus":"ACTIVE","TableArn":"arn:aws:dynamodb:us-east-1:000000000000:table/orders","LatestStreamArn":"` + arn + `","LatestStreamLabel":"2026-01-01T00:00:00.000","StreamSpecification":{"StreamEnabled":true,"StreamViewType":"NEW_AND_OLD_IMAGES"},"KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}],"AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"}]}}`,
		"DescribeStream": `{"StreamDescription":{"StreamArn":"` + arn + `","StreamLabel":"2026-01-01T00:00:00.000","StreamStatus":"ENABLED","StreamViewType":"NEW_AND_OLD_IMAGES","TableName":"orders","KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}],` +
			`"Shards":[{"ShardId":"shardId-00000000000000000001-00000001","SequenceNumberRange":{"StartingSequenceNumber":"100000000000000000001"}}]}}`,
		"ListStreams":      `{"Streams":[{"StreamArn":"` + arn + `","TableName":"orders","StreamLabel":"2026-01-01T00:00:00.000"}]}`,
		"GetShardIterator": `{"ShardIterator":"first"}`,
	}
	const record = `{"eventID":"1","eventName":"INSERT","eventVersion":"1.1","eventSource":"aws:dynamodb","awsRegion":"us-east-1","dynamodb":{"ApproximateCreationDateTime":1767225600,"Keys":{"pk":{"S":"order#1"}},"NewImage":{"pk":{"S":"order#1"}},"SequenceNumber":"100000000000000000001","SizeBytes":10,"StreamViewType":"NEW_AND_OLD_IMAGES"}}`
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, call, _ := strings.Cut(req.Header.Get("X-Amz-Target"), ".")
		body, _ := io.ReadAll(req.Body)
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		answer, ok := answers[call]
		switch {
		case call == "GetRecords" && bytes.Contains(body, []byte(`"first"`)):
			answer = `{"Records":[` + record + `],"NextShardIterator":"next"}`
		case call == "GetRecords":
			answer = `{"Records":[],"NextShardIterator":"next"}`
		case !ok:
			w.WriteHeader(http.StatusBadRequest)
			answer = `{"__type":"UnknownOperationException","message":"` + call + `"}`
		}
		_, _ = io.WriteString(w, answer)
	})
}
