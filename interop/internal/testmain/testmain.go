// Package testmain has what the tests of a package that waits for real servers begin with.
package testmain

import (
	"flag"
	"fmt"
	"os"
	"strconv"
)

// Parallel has n tests run at once, unless the command line says how many: these tests wait much and compute little, so
// that it is not for the number of processors to say.
func Parallel(n int) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if given {
		return
	}
	if err := flag.Set("test.parallel", strconv.Itoa(n)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
