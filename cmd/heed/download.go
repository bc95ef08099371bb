package main

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/heed-sdk/heed/delay"
	"github.com/heed-sdk/heed/requests"
)

// download is one run of the command of that name.
type download struct {
	app    *app
	client *requests.Client
	url    string

	file     string // empty: as the answer names it
	force    bool
	resume   bool
	checksum string // lower-case hexadecimal SHA-256; empty: any
}

func (a *app) download() *cobra.Command {
	var (
		login    authFlags
		d        download
		checksum string
		timeout  time.Duration
	)
	cmd := &cobra.Command{
		Use:   "download URL",
		Short: "Download a file, and go on where a download broke off",
		Long: `Download a file into the current directory, under the name that the answer gives it, or into --output. The file appears
when it is complete. Where the address redirects to a storage, the storage sees no credential.

With --resume, what broke off is kept in FILE.part, and what tells this version of the file from others in
FILE.part.json; the same command goes on from there, or from the start if the file has changed meanwhile. While one run
writes FILE.part, another one of the same FILE is refused.

The access token in ` + tokenVariable + `, or of the login that is named by --client-id and --issuer or --token-url, is sent to
the address's origin and nowhere else.`,
		Example: `  heed download https://api.example.com/reports/7
  heed download --resume https://api.example.com/backup -o backup.tar --checksum sha256:9f86d0...`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			u, err := url.Parse(args[0])
			if err != nil || u.Host == "" {
				return usage("that is not an address of the form https://host/path")
			}
			if d.checksum, err = parseChecksum(checksum); err != nil {
				return err
			}
			if timeout < 0 {
				return usage("--timeout is not negative")
			}
			if d.resume && d.file == "" {
				return usage("--resume needs --output: the partial file is looked for before the answer can name it")
			}
			if d.file != "" {
				if err := free(d.file, d.force); err != nil {
					return err
				}
			}
			ctx := cmd.Context()
			if timeout > 0 {
				var cancel func()
				ctx, cancel = delay.TimersOn(nil).WithTimeout(ctx, delay.KindRequestTimeout, timeout)
				defer cancel()
			}
			t := &requests.Transport{Base: a.transport, Hooks: requests.Hooks{OnWait: a.tellWait}}
			tokens, done, err := a.tokens(&login)
			if err != nil {
				return err
			}
			defer done()
			t.Tokens = tokens
			if d.client, err = requests.NewClient(u.Scheme+"://"+u.Host, t); err != nil {
				return err
			}
			d.app, d.url = a, args[0]
			return d.run(ctx)
		},
	}
	login.name(cmd)
	f := cmd.Flags()
	f.StringVarP(&d.file, "output", "o", "", "the file to write, in place of the one that the answer names")
	f.BoolVar(&d.force, "force", false, "replace a file that is there")
	f.BoolVar(&d.resume, "resume", false, "keep what broke off, and go on from it")
	f.StringVar(&checksum, "checksum", "", "what the file must be, as sha256:HEX; any other leaves nothing")
	f.DurationVar(&timeout, "timeout", 0, "the time for all of it, waits included (0: none)")
	return cmd
}

func parseChecksum(s string) (string, error) {
	if s == "" {
		return "", nil
	}
	sum, ok := strings.CutPrefix(s, "sha256:")
	if sum = strings.ToLower(sum); !ok || len(sum) != 64 || strings.Trim(sum, "0123456789abcdef") != "" {
		return "", usage("--checksum takes sha256: and 64 hexadecimal digits")
	}
	return sum, nil
}

// free reports whether a file may be written under a name.
func free(name string, force bool) error {
	switch info, err := os.Lstat(name); {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return &outputError{err}
	case info.IsDir():
		return usage("%s is a directory: name a file in it with --output", name)
	case special(name):
		return usage("%s is a device or a pipe, which no file can replace: name a file with --output", name)
	case !force:
		return usage("%s is there already: take --force to replace it, or --output for another name", name)
	}
	return nil
}

// run downloads the file, puts it into its place and tells what it is.
func (d *download) run(ctx context.Context) error {
	p := &partial{url: d.url}
	defer p.end()
	if d.resume {
		p.name, p.kept = d.file+".part", true
		if err := p.open(); err != nil {
			return err
		}
	}

	from, err := d.fetch(ctx, p)
	if err != nil {
		return err
	}
	defer from.Body.Close()
	name := d.file
	if name == "" {
		if name, err = d.named(from.FileName); err != nil {
			return err
		}
	}
	if err := p.begin(name, from); err != nil {
		return err
	}
	bar := d.app.progress(from)
	err = p.fill(from, d.app.disk, bar)
	bar.clear()
	if err != nil {
		return err
	}
	sum := p.sum()
	if d.checksum != "" && sum != d.checksum {
		p.kept = false
		return &checksumError{name, sum}
	}
	if err := p.place(name, d.force); err != nil {
		return err
	}
	return d.app.downloaded(name, p.size, from.Offset > 0, sum)
}

// fetch asks for the rest of the file, or for all of it where there is nothing to go on from.
func (d *download) fetch(ctx context.Context, p *partial) (*requests.Download, error) {
	from, err := d.client.DownloadFrom(ctx, d.url, p.size, p.validator)
	if refused, ok := errors.AsType[*requests.Error](err); ok && p.size > 0 && refused.Status == http.StatusRequestedRangeNotSatisfiable {
		// A server that looks at the range before the validator: the file is shorter than it was.
		return d.client.Download(ctx, d.url)
	}
	return from, err
}

// named is the name that the answer gives, if it is one to write under unasked.
func (d *download) named(name string) (string, error) {
	if strings.HasPrefix(name, ".") || !filepath.IsLocal(name) || strings.ContainsRune(name, ':') {
		return "", usage("the answer names the file %q, which is hidden or special: name it with --output", name)
	}
	return name, free(name, d.force)
}

// downloaded prints the result.
func (a *app) downloaded(name string, size int64, resumed bool, sum string) error {
	if !a.json {
		return a.out.printf("%s: %d bytes, sha256:%s\n", oneLine(name), size, sum)
	}
	return a.out.object(struct {
		File    string `json:"file"`
		Bytes   int64  `json:"bytes"`
		Resumed bool   `json:"resumed"`
		SHA256  string `json:"sha256"`
	}{name, size, resumed, sum})
}
