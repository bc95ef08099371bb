package main

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"

	"github.com/heed-sdk/heed/requests"
)

// partial is a file that is not complete yet. One that is kept outlives the command, with a note beside it.
type partial struct {
	url       string
	name      string // empty: not made yet
	kept      bool
	validator string
	size      int64

	claim *claim
	file  *os.File
	hash  hash.Hash
	noted bool // FILE.part.json is ours
	done  bool
}

// note is what FILE.part.json holds. The address is only in it as a digest: it may be a credential by itself.
type note struct {
	Address   string `json:"address"`
	Validator string `json:"validator"`
}

func (p *partial) address() string {
	sum := sha256.Sum256([]byte(p.url))
	return hex.EncodeToString(sum[:])
}

// open finds what an earlier run has left of the same address. What cannot be gone on from is as good as nothing. Nobody
// else can write the file from here to end.
func (p *partial) open() (err error) {
	if p.claim, err = claimFile(p.name); err != nil {
		p.name = "" // it is somebody else's to remove
		return err
	}
	b, err := os.ReadFile(p.name + ".json")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return &outputError{err}
	}
	if n, ok := readNote(b); ok && n.Address == p.address() && n.Validator != "" {
		return p.goOn(n)
	}
	return nil
}

func readNote(b []byte) (n note, ok bool) {
	err := json.Unmarshal(b, &n)
	return n, err == nil
}

// goOn takes up the file that a note is about.
func (p *partial) goOn(n note) error {
	f, err := os.OpenFile(p.name, os.O_RDWR, 0)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return &outputError{err}
	}
	p.file = f
	info, err := f.Stat()
	if err != nil {
		return &outputError{err}
	}
	// The last byte is asked for once more, so that a part that has them all still has something to ask for.
	if p.size = max(info.Size()-1, 0); p.size > 0 {
		p.validator = n.Validator
	}
	return nil
}

// begin makes the file ready for an answer: the old bytes if it goes on from them, or none.
func (p *partial) begin(name string, from *requests.Download) (err error) {
	p.hash = sha256.New()
	if from.Offset > 0 {
		if _, err := io.Copy(p.hash, io.NewSectionReader(p.file, 0, from.Offset)); err != nil {
			return &outputError{err}
		}
	}
	p.size, p.noted = from.Offset, p.kept
	if p.file == nil {
		flag := os.O_RDWR | os.O_CREATE | os.O_TRUNC
		if !p.kept {
			p.name, flag = filepath.Join(filepath.Dir(name), ".heed-"+rand.Text()), os.O_RDWR|os.O_CREATE|os.O_EXCL
		}
		// With the permissions that the user's umask leaves, as any other tool writes a file it is asked for.
		if p.file, err = os.OpenFile(p.name, flag, 0o666); err != nil { //nolint:gosec // G302: see above
			p.name = ""
			return &outputError{err}
		}
	}
	if from.Offset == 0 && p.kept {
		if err := p.anew(from.Validator); err != nil {
			return err
		}
	}
	if err := p.file.Truncate(p.size); err != nil {
		return &outputError{err}
	}
	if _, err := p.file.Seek(p.size, io.SeekStart); err != nil {
		return &outputError{err}
	}
	return nil
}

// anew replaces the note before there is a byte that it would be wrong about. A file that the server cannot tell from
// others is not kept: nothing could be gone on from.
func (p *partial) anew(validator string) error {
	if err := os.Remove(p.name + ".json"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return &outputError{err}
	}
	if err := p.file.Truncate(0); err != nil {
		return &outputError{err}
	}
	if p.validator = validator; validator == "" {
		p.kept = false
		return nil
	}
	b, err := json.Marshal(note{p.address(), validator})
	if err != nil {
		return err
	}
	return writeFile(p.name+".json", bytes.NewReader(b), 0o666)
}

// fill writes the answer behind what is there, through disk if there is one.
func (p *partial) fill(from *requests.Download, disk func(io.Writer) io.Writer, bar io.Writer) error {
	var w io.Writer = p.file
	if disk != nil {
		w = disk(w)
	}
	n, err := io.Copy(io.MultiWriter(writeOnly{w}, p.hash, bar), from.Body)
	p.size += n
	if err == nil && from.Length >= 0 && n != from.Length {
		err = io.ErrUnexpectedEOF
	}
	if _, full := errors.AsType[*outputError](err); err != nil && !full && p.kept && p.size > 0 {
		return &brokenOff{fmt.Errorf("%w, %d bytes of it are in %s", err, p.size, p.name)}
	}
	return interrupted(err)
}

func (p *partial) sum() string { return hex.EncodeToString(p.hash.Sum(nil)) }

// place makes the complete file appear under its name. Without force, one that has come there meanwhile stays: a link is
// refused where a name is taken, and a rename is for file systems without links.
func (p *partial) place(name string, force bool) error {
	for _, step := range []func() error{p.file.Sync, p.file.Close} {
		if err := step(); err != nil {
			return &outputError{err}
		}
	}
	if !force {
		err := os.Link(p.name, name)
		if err == nil {
			p.done = true // and end removes the other name
			return nil
		}
		if err := free(name, false); err != nil {
			return err
		}
	}
	if err := os.Rename(p.name, name); err != nil {
		return &outputError{err}
	}
	p.done = true
	return nil
}

// end removes what is not to be kept: everything of a download that is done, or failed for good.
func (p *partial) end() {
	defer p.claim.release()
	if p.file != nil {
		_ = p.file.Close() // place has seen the error that counts
	}
	if p.name == "" || p.kept && !p.done {
		return
	}
	_ = os.Remove(p.name)
	if p.noted {
		_ = os.Remove(p.name + ".json")
	}
}

// checksumError is a file that is another than was asked for.
type checksumError struct{ name, sum string }

func (e *checksumError) Error() string {
	return fmt.Sprintf("%s has the checksum sha256:%s, another than asked for, and was thrown away: ask its publisher which is right", e.name, e.sum)
}
