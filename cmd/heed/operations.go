package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/heed-sdk/heed/cmd/heed/internal/opgen"
)

func (a *app) operations() *cobra.Command {
	var (
		o                 opgen.Options
		paths, base, file string
	)
	cmd := &cobra.Command{
		Use:   "operations FILE",
		Short: "Write an API's table of operations, as Go",
		Long: `Write the operations that an API declares as a table for requests.Transport: what may be repeated, how often, and on what.

FILE is an OpenAPI 3 document, or a behaviour model in JSON. What a document does not say is as the method says. It says
more by extensions of its operations:

  x-idempotent: true                          # may be repeated whatever its method
  x-retry: {max: 3, base_delay_ms: 1000, retry_on: [429, 503]}

A behaviour model says the same by {"operations": {ID: {"idempotent": true, "retry": {...}}}}, and has no methods and paths:
--paths names the OpenAPI document that has them, where each ID is an operationId.

The patterns are those of http.ServeMux. It has none for a wildcard in a part of a segment, such as /todos/{id}.json, and
none for two paths of which neither is more specific, such as /a/{x} and /{y}/b. Both are refused; --widen makes the
segment a wildcard as a whole, which matches /todos/7.xml as well. What is not understood is refused with its line.`,
		Example: `  heed operations openapi.yaml --package api -o operations.go
  //go:generate go run github.com/heed-sdk/heed/cmd/heed operations openapi.yaml -o operations.go`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.Package == "" {
				o.Package, _ = a.env("GOPACKAGE") // go generate sets it
			}
			if o.Package == "" {
				return usage("--package is needed outside of go generate: take that of the file's directory")
			}
			if cmd.Flags().Changed("base") {
				o.Base = &base
			}
			if o.Source, err = readSource(args[0]); err != nil {
				return err
			}
			if paths != "" {
				f, err := readSource(paths)
				if err != nil {
					return err
				}
				o.Paths = &f
			}
			code, n, err := opgen.Generate(o)
			if err != nil {
				return err
			}
			return a.generated(file, code, n)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&file, "output", "o", "", "the file to write, in place of standard output")
	f.StringVar(&o.Package, "package", "", "the package of the file (none: that of go generate)")
	f.StringVar(&o.Var, "var", "Operations", "the variable that holds the table")
	f.StringVar(&paths, "paths", "", "the OpenAPI document that has the paths of a behaviour model")
	f.StringVar(&base, "base", "", "what every path begins with (none: the path of the document's servers)")
	f.BoolVar(&o.Widen, "widen", false, "make a segment that is a wildcard in part one as a whole, which matches more")
	return cmd
}

func readSource(name string) (opgen.File, error) {
	b, err := os.ReadFile(name)
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err
	}
	if err != nil {
		return opgen.File{}, usage("%s cannot be read: %v", name, err)
	}
	return opgen.File{Name: name, Data: b}, nil
}

// generated writes the code, or as JSON what came of it.
func (a *app) generated(file string, code []byte, n int) error {
	result := struct {
		File       string `json:"file,omitempty"`
		Operations int    `json:"operations"`
		Source     string `json:"source,omitempty"`
	}{file, n, ""}
	switch {
	case file != "":
		if err := writeFile(file, bytes.NewReader(code), 0o666); err != nil {
			return err
		}
		if a.verbose && !a.json {
			a.out.line("%s: %d operations", file, n)
		}
	case a.json:
		result.Source = string(code)
	default:
		_, err := a.out.Write(code)
		return err
	}
	if !a.json {
		return nil
	}
	return a.out.object(result)
}
