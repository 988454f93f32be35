package main

import (
	"bytes"
	"fmt"
	"time"
)

// plot draws one panel for each measure over the time, from zero to its greatest value.
func plot(samples []sample) []byte {
	const width, height, gap, left = 800, 110, 40, 70
	var b bytes.Buffer
	names := measured()
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n",
		width+left+20, len(names)*(height+gap)+gap)
	b.WriteString(`<rect width="100%" height="100%" fill="white"/>` + "\n")
	end := time.Second
	if len(samples) > 0 {
		end = max(end, samples[len(samples)-1].at)
	}
	for i, name := range names {
		top := gap + i*(height+gap)
		most := 1.0
		for _, s := range samples {
			most = max(most, s.measures()[i])
		}
		fmt.Fprintf(&b, `<text x="%d" y="%d">%s</text>`+"\n", left, top-6, name)
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%g</text><text x="%d" y="%d" text-anchor="end">0</text>`+"\n", left-6, top+10, most, left-6, top+height)
		fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%d" height="%d" fill="none" stroke="#bbb"/>`+"\n", left, top, width, height)
		fmt.Fprintf(&b, `<polyline fill="none" stroke="#1f5fa8" points="`)
		for _, s := range samples {
			fmt.Fprintf(&b, "%.1f,%.1f ", left+float64(s.at)/float64(end)*width, float64(top)+height*(1-s.measures()[i]/most))
		}
		b.WriteString("\"/>\n")
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%v</text>`+"\n</svg>\n", left+width, gap+len(names)*(height+gap)-gap+16, end.Round(time.Second))
	return b.Bytes()
}
