package main

import (
	"bytes"
	"cmp"
	"errors"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"slices"
)

// shrink writes a PNG again with its most frequent colors alone. A page with text and
// lines takes half of the space then, and looks the same.
func shrink(path string) error {
	text, err := os.ReadFile(path) //nolint:gosec // the user's own file
	if err != nil {
		return err
	}
	full, err := png.Decode(bytes.NewReader(text))
	if err != nil {
		return err
	}
	var small bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&small, reduce(full)); err != nil {
		return err
	}
	if small.Len() >= len(text) {
		return errors.New("the PNG is no smaller with fewer colors")
	}
	return os.WriteFile(path, small.Bytes(), 0o600)
}

// reduce has the most frequent colors of a picture, up to 128 of them.
func reduce(full image.Image) *image.Paletted {
	bounds := full.Bounds()
	counts := map[color.RGBA]int{}
	at := func(x, y int) color.RGBA {
		c, _ := color.RGBAModel.Convert(full.At(x, y)).(color.RGBA)
		return c
	}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			counts[at(x, y)]++
		}
	}
	frequent := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int { return cmp.Compare(counts[b], counts[a]) })
	var palette color.Palette
	for _, c := range frequent[:min(len(frequent), 128)] {
		palette = append(palette, c)
	}
	nearest := map[color.RGBA]uint8{}
	for c := range counts {
		nearest[c] = uint8(palette.Index(c)) //nolint:gosec // up to 127
	}
	small := image.NewPaletted(bounds, palette)
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			small.SetColorIndex(x, y, nearest[at(x, y)])
		}
	}
	return small
}
