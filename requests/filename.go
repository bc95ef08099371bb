package requests

import (
	"mime"
	"strings"
	"unicode"
)

// nameLimit is what file systems take, in bytes.
const nameLimit = 255

// fileName is the name that a Content-Disposition gives a file (RFC 6266, section 4.3), else the last segment of a path.
func fileName(disposition, path string) string {
	if _, params, err := mime.ParseMediaType(disposition); err == nil {
		if name := baseName(params["filename"]); name != "" { // filename* takes precedence in it
			return name
		}
	}
	if name := baseName(path); name != "" {
		return name
	}
	return "download"
}

// baseName is the last element of a name, with separators of any system, and without what a terminal or a directory
// listing would act on instead of showing. What is left may be created in a directory, and stays in it.
func baseName(name string) string {
	name = strings.ToValidUTF8(name, "")
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
			return -1
		}
		return r
	}, name)
	name = strings.TrimSpace(cut(strings.TrimSpace(name), nameLimit))
	if strings.Trim(name, ".") == "" { // ".", ".." and what Windows takes for them
		return ""
	}
	return name
}
