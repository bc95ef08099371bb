package sse

import (
	"encoding/binary"
	"math/bits"
)

// planes turns a block round: each word that it returns has the same bit of all 64 bytes. The bit of byte 8*i+j is bit 7-i of
// byte j, because that takes no more than to swap bits within bytes.
func planes(p *[block]byte) (b0, b1, b2, b3, b4, b5, b6, b7 uint64) {
	b0, b1 = binary.LittleEndian.Uint64(p[56:]), binary.LittleEndian.Uint64(p[48:])
	b2, b3 = binary.LittleEndian.Uint64(p[40:]), binary.LittleEndian.Uint64(p[32:])
	b4, b5 = binary.LittleEndian.Uint64(p[24:]), binary.LittleEndian.Uint64(p[16:])
	b6, b7 = binary.LittleEndian.Uint64(p[8:]), binary.LittleEndian.Uint64(p[0:])

	b0, b4 = swap(b0, b4, 4, each*0x0F)
	b1, b5 = swap(b1, b5, 4, each*0x0F)
	b2, b6 = swap(b2, b6, 4, each*0x0F)
	b3, b7 = swap(b3, b7, 4, each*0x0F)

	b0, b2 = swap(b0, b2, 2, each*0x33)
	b1, b3 = swap(b1, b3, 2, each*0x33)
	b4, b6 = swap(b4, b6, 2, each*0x33)
	b5, b7 = swap(b5, b7, 2, each*0x33)

	b0, b1 = swap(b0, b1, 1, each*0x55)
	b2, b3 = swap(b2, b3, 1, each*0x55)
	b4, b5 = swap(b4, b5, 1, each*0x55)
	b6, b7 = swap(b6, b7, 1, each*0x55)
	return b0, b1, b2, b3, b4, b5, b6, b7
}

// swap exchanges the bits of b in mask with those of a that are n higher.
func swap(a, b uint64, n int, mask uint64) (uint64, uint64) {
	t := (a>>n ^ b) & mask
	return a ^ t<<n, b ^ t
}

// after moves each bit of a plane to that of the byte after it. What comes before the first is what last has returned for
// the block before.
func after(plane, before uint64) uint64 { return plane<<8 | plane>>57 | before }

// last returns the bit of the last byte of a plane, where after needs it.
func last(plane uint64) uint64 { return plane >> 49 & 0x80 }

// inOrder returns the bits of a plane in the order of their bytes, the lowest for the first.
func inOrder(plane uint64) uint64 {
	plane ^= delta(plane, 7, 0x00AA00AA00AA00AA)
	plane ^= delta(plane, 14, 0x0000CCCC0000CCCC)
	plane ^= delta(plane, 28, 0x00000000F0F0F0F0)
	return bits.ReverseBytes64(plane)
}

// delta is what exchanges the bits of a word in mask with those that are n higher.
func delta(x uint64, n int, mask uint64) uint64 {
	t := (x>>n ^ x) & mask
	return t<<n ^ t
}
