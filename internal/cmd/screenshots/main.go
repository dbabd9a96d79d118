// Command screenshots makes the pictures of the daemon's page in a folder, for the
// documents. The daemon in them is made up: a picture of a real one would take an hour.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"slices"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/sluicehq/sluice/internal/browsertest"
	"github.com/sluicehq/sluice/internal/page"
)

func main() {
	dir := "docs/images"
	if len(os.Args) > 1 {
		dir = os.Args[1]
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, dir); err != nil {
		fmt.Fprintln(os.Stderr, "screenshots:", err)
		os.Exit(1)
	}
}

// mostBytes is the size of a picture: every clone of the repository has them all.
const mostBytes = 150_000

func run(ctx context.Context, dir string) error {
	shop, err := newShop(ctx)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/", page.New(shop, shop.status.Application, true))
	mux.Handle("/page/static/", page.Static())
	server := httptest.NewServer(mux)
	defer server.Close()
	tab, err := browsertest.Start(ctx)
	if err != nil {
		return err
	}
	defer tab.Close()
	for _, p := range []struct {
		name, path, scheme string
		width, height      int64
	}{
		{"overview.png", "/", "light", 1080, 830},
		{"overview-dark.png", "/", "dark", 1080, 830},
		{"letter-narrow.png", "/page/letters/" + shop.letter, "light", 390, 844},
	} {
		picture, err := chromedp.Run(tab.Context, capture(server.URL+p.path, p.scheme, p.width, p.height))
		if err == nil {
			picture, err = smaller(picture)
		}
		if err == nil && len(picture) > mostBytes {
			err = fmt.Errorf("it has %d bytes, more than %d", len(picture), mostBytes)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, p.name), picture, 0o644)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		fmt.Println(filepath.Join(dir, p.name), len(picture))
	}
	if problems := tab.Problems(); len(problems) > 0 {
		return errors.New(problems[0])
	}
	return nil
}

// capture shows a page, and makes a picture of its beginning.
func capture(url, scheme string, width, height int64) chromedp.Action[[]byte] {
	return func(ctx context.Context, t *chromedp.Target) ([]byte, error) {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
		if err != nil {
			return nil, err
		}
		if _, err := chromedp.Steps(chromedp.EmulateViewport(width, height, chromedp.EmulateMobile, chromedp.EmulateScale(1.5)), chromedp.Navigate(url))(ctx, t); err != nil {
			return nil, err
		}
		return chromedp.CaptureScreenshot()(ctx, t)
	}
}

// smaller writes a picture with 256 colours, which is enough for a page.
func smaller(data []byte) ([]byte, error) {
	from, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	to := image.NewPaletted(from.Bounds(), commonest(from, 256))
	draw.Draw(to, to.Bounds(), from, from.Bounds().Min, draw.Src)
	var b bytes.Buffer
	err = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, to)
	return b.Bytes(), err
}

// commonest returns the n colours that a picture has most.
func commonest(of image.Image, n int) color.Palette {
	counts := make(map[color.RGBA]int)
	for y := of.Bounds().Min.Y; y < of.Bounds().Max.Y; y++ {
		for x := of.Bounds().Min.X; x < of.Bounds().Max.X; x++ {
			counts[color.RGBAModel.Convert(of.At(x, y)).(color.RGBA)]++
		}
	}
	colours := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a.R, b.R), cmp.Compare(a.G, b.G), cmp.Compare(a.B, b.B))
	})
	var p color.Palette
	for _, c := range colours[:min(n, len(colours))] {
		p = append(p, c)
	}
	return p
}
