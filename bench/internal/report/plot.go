package report

import (
	"image/color"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/docent-go/docent/bench/internal/plan"
)

// picture is one plot and what it is called.
type picture struct {
	name, title string // name without ".svg"
	plot        *plot.Plot
}

const (
	width  = 22 * vg.Centimeter
	height = 11 * vg.Centimeter
)

// line is the points of one peer.
type line struct {
	peer   plan.Peer
	points plotter.XYs
}

// pictures are the plots of all settings.
func pictures(all []block) ([]picture, error) {
	var some []picture
	for _, s := range plan.Settings() {
		var here []block
		for _, b := range all {
			if b.setting.Name == s.Name {
				here = append(here, b)
			}
		}
		more, err := settingPictures(&s, here)
		if err != nil {
			return nil, err
		}
		some = append(some, more...)
	}
	return some, nil
}

// settingPictures are those of one setting.
func settingPictures(s *plan.Setting, here []block) ([]picture, error) {
	plain := slices.DeleteFunc(slices.Clone(here), func(b block) bool { return !b.workload.Plain() })
	others := slices.DeleteFunc(slices.Clone(here), func(b block) bool { return b.workload.Plain() })
	var some []picture
	for _, one := range []struct {
		name, title, axis string
		figure            func(row) float64
	}{
		{"rate", "Cycles per second by contenders of one process on one lock", "cycles/s, x rawho", func(r row) float64 { return r.rate }},
		{"handover", "Hand-over (p50) by contenders of one process on one lock", "hand-over, x rawho", func(r row) float64 { return r.handOver[0] }},
		{"cpu", "Client's processor time per cycle by contenders of one process", "client CPU, x rawho", func(r row) float64 { return r.client }},
	} {
		p := newPlot(s, one.title, "contenders", one.axis)
		p.X.Scale = plot.LogScale{}
		p.X.Tick.Marker = contenderTicks(plain)
		n, err := draws(p, lines(plain, one.figure, func(b block) float64 { return float64(b.workload.Contenders) }), true)
		if err != nil {
			return nil, err
		}
		if n > 1 {
			some = append(some, picture{s.Name + "-" + one.name, one.title + ": " + s.Title, p})
		}
	}
	if len(others) == 0 {
		return some, nil
	}
	title := "Cycles per second in the other workloads"
	p := newPlot(s, title, "", "cycles/s, x floor")
	var names []string
	for _, b := range others {
		names = append(names, b.workload.Name)
	}
	p.NominalX(names...)
	p.X.Tick.Label.Rotation = math.Pi / 4 // so that many names have room
	p.X.Tick.Label.XAlign = draw.XRight
	position := map[string]float64{}
	for i, name := range names {
		position[name] = float64(i)
	}
	n, err := draws(p, lines(others, func(r row) float64 { return r.rate }, func(b block) float64 { return position[b.workload.Name] }), false)
	if n > 1 {
		some = append(some, picture{s.Name + "-others", title + ": " + s.Title, p})
	}
	return some, err
}

func newPlot(s *plan.Setting, title, x, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text = title + "\n" + s.Title
	p.X.Label.Text, p.Y.Label.Text = x, y
	p.Y.Scale = plot.LogScale{}
	p.Y.Tick.Marker = plot.TickerFunc(ratioTicks)
	p.Legend.Top, p.Legend.Left = true, false
	p.BackgroundColor = color.White
	return p
}

// lines are a figure of each peer by that of the floor.
func lines(all []block, figure func(row) float64, x func(block) float64) []line {
	var some []line
	for _, peer := range plan.Peers() {
		l := line{peer: peer}
		for _, b := range all {
			y := figure(b.find(peer.Name)) / figure(b.floor())
			if !math.IsNaN(y) && !math.IsInf(y, 0) && y > 0 {
				l.points = append(l.points, plotter.XY{X: x(b), Y: y})
			}
		}
		if len(l.points) > 0 {
			some = append(some, l)
		}
	}
	return some
}

// draws draws lines, or points where the positions have no order, and returns how many.
func draws(p *plot.Plot, all []line, joined bool) (int, error) {
	for _, l := range all {
		i := slices.IndexFunc(plan.Peers(), func(p plan.Peer) bool { return p.Name == l.peer.Name })
		path, points, err := plotter.NewLinePoints(l.points)
		if err != nil {
			return 0, err
		}
		path.Color, points.Color = colour(i), colour(i)
		path.Width, points.Radius = vg.Points(1.5), vg.Points(3.5)
		points.Shape = shape(i)
		if joined {
			p.Add(path, points)
		} else {
			p.Add(points)
		}
		p.Legend.Add(l.peer.Name, points)
	}
	p.Add(plotter.NewGrid())
	if joined {
		p.X.Max *= 3 // for the legend
	} else {
		p.X.Max = 1.15*p.X.Max + 1
	}
	return len(all), nil
}

// contenderTicks are the numbers that were measured.
func contenderTicks(all []block) plot.Ticker {
	var ticks plot.ConstantTicks
	for _, b := range all {
		n := float64(b.workload.Contenders)
		ticks = append(ticks, plot.Tick{Value: n, Label: strconv.Itoa(b.workload.Contenders)})
	}
	return ticks
}

// ratioTicks are powers of two.
func ratioTicks(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	for e := math.Floor(math.Log2(low)); e <= math.Ceil(math.Log2(high)); e++ {
		v := math.Exp2(e)
		ticks = append(ticks, plot.Tick{Value: v, Label: strconv.FormatFloat(v, 'g', -1, 64)})
	}
	return ticks
}

func colour(i int) color.Color {
	all := []color.RGBA{
		{0xd6, 0x27, 0x28, 255},
		{0x7f, 0x7f, 0x7f, 255},
		{0xb0, 0xb0, 0xb0, 255},
		{0x40, 0x40, 0x40, 255},
		{0x1f, 0x77, 0xb4, 255},
		{0x2c, 0xa0, 0x2c, 255},
		{0xff, 0x7f, 0x0e, 255},
		{0x94, 0x67, 0xbd, 255},
		{0x8c, 0x56, 0x4b, 255},
	}
	return all[i%len(all)]
}

func shape(i int) draw.GlyphDrawer {
	all := []draw.GlyphDrawer{
		draw.CircleGlyph{},
		draw.BoxGlyph{},
		draw.CrossGlyph{},
		draw.PlusGlyph{},
		draw.PyramidGlyph{},
		draw.SquareGlyph{},
		draw.TriangleGlyph{},
		draw.RingGlyph{},
	}
	return all[i%len(all)]
}

// save writes the picture to dir.
func (p *picture) save(dir string) error {
	canvas := vgsvg.New(width, height)
	p.plot.Draw(draw.New(canvas))
	file, err := os.Create(filepath.Join(dir, p.name+".svg"))
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if _, err := canvas.WriteTo(file); err != nil {
		return err
	}
	return file.Close()
}
