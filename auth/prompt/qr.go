package prompt

import "github.com/skip2/go-qrcode"

// quietZone is how many light modules have to be around a QR code (ISO/IEC 18004), and fewest how many are left where the
// window is small: cameras read it all the same.
const (
	quietZone = 4
	fewest    = 2
)

// qr returns the modules of a text's QR code, dark ones true and without a quiet zone, or nil if there is none or it has
// more than so many to a side.
func qr(text string, most int) (modules [][]bool) {
	// The library panics on what it takes for a mistake of its own, and a login can do without the picture.
	defer func() {
		if recover() != nil {
			modules = nil
		}
	}()
	// The lowest level of correction: a screen has no stains, and a smaller code fits more windows.
	code, err := qrcode.New(text, qrcode.Low)
	if err != nil || 17+4*code.VersionNumber > most { // before it is computed, which takes long for large ones
		return nil
	}
	code.DisableBorder = true
	return code.Bitmap()
}

// drawQR draws modules in half blocks, with so much of a quiet zone. What is drawn are the light ones: on a dark ground
// that is a code as printed on paper, and one that is the other way round many cameras do not read.
func drawQR(modules [][]bool, zone int) []string {
	size := len(modules) + 2*zone
	light := make([][]bool, size)
	for y := range light {
		light[y] = make([]bool, size)
		for x := range light[y] {
			inside := y >= zone && y < size-zone && x >= zone && x < size-zone
			light[y][x] = !inside || !modules[y-zone][x-zone]
		}
	}
	return halfBlocks(light)
}
