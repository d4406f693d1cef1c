// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
	"time"
)

// Plot is a chart of lines over the time of the run.
type Plot struct {
	// File is its name in the folder of the report; Title and Unit are shown.
	File, Title, Unit string
	Lines             []Line
}

// Line is one line of a chart.
type Line struct {
	Name   string
	Points []Point
}

// Point is a value at a time since the begin of the run.
type Point struct {
	At    time.Duration
	Value float64
}

// plots returns all charts of the report.
func (r *Report) plots() []Plot {
	memory := Plot{File: "memory.svg", Title: "Memory (RssAnon)", Unit: "MiB"}
	cpu := Plot{File: "cpu.svg", Title: "CPU", Unit: "cores"}
	for i, name := range r.Processes {
		m, c := Line{Name: name}, Line{Name: name}
		var before *Sample
		for j := range r.Samples {
			s := &r.Samples[j]
			if s.Of[i] == nil {
				before = nil
				continue
			}
			m.Points = append(m.Points, Point{s.At, mebi(s.Of[i].Anon)})
			if before != nil && s.At > before.At {
				c.Points = append(c.Points, Point{s.At, grown(before.Of[i].CPU, s.Of[i].CPU).Seconds() / (s.At - before.At).Seconds()})
			}
			before = s
		}
		memory.Lines, cpu.Lines = append(memory.Lines, m), append(cpu.Lines, c)
	}
	out := append([]Plot{memory, cpu}, r.Plots...)
	for i := range out {
		out[i].stages(r.Stages)
	}
	return out
}

// stages adds a line without a value for the begin of each stage.
func (p *Plot) stages(all []*Stage) {
	for _, s := range all {
		p.Lines = append(p.Lines, Line{Name: s.Name, Points: []Point{{At: s.From, Value: math.NaN()}}})
	}
}

// Sizes of a chart, in pixels: the whole, the margins, and the height of a line of text.
const (
	width, height           = 960, 420
	left, right, top, below = 70, 20, 40, 60
	lineHeight              = 16
)

// colours of the lines of a chart, readable on white and by most people.
var colours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"}

// svg draws the chart.
func (p *Plot) svg() string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, height)
	fmt.Fprintf(&b, `<text x="%d" y="20" font-size="15">%s, %s</text>`+"\n", left, html.EscapeString(p.Title), html.EscapeString(p.Unit))
	firstAt, lastAt, highest := p.extent()
	x := func(at time.Duration) float64 {
		return left + float64(width-left-right)*float64(at-firstAt)/float64(lastAt-firstAt)
	}
	y := func(value float64) float64 { return height - below - float64(height-top-below)*value/highest }
	const steps = 5
	for i := range steps + 1 {
		value, at := highest*float64(i)/steps, firstAt+(lastAt-firstAt)*time.Duration(i)/steps
		fmt.Fprintf(&b, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#ddd"/>`+"\n", left, width-right, y(value), y(value))
		fmt.Fprintf(&b, `<text x="%d" y="%.1f" text-anchor="end">%.4g</text>`+"\n", left-6, y(value)+4, value)
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", x(at), height-below+lineHeight, at.Round(time.Second))
	}
	drawn, marks := 0, 0
	for _, line := range p.Lines {
		if len(line.Points) == 1 && math.IsNaN(line.Points[0].Value) {
			if line.Points[0].At < firstAt || line.Points[0].At > lastAt {
				continue
			}
			at := x(line.Points[0].At)
			fmt.Fprintf(&b, `<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="#999" stroke-dasharray="3 3"/>`+"\n", at, at, top, height-below)
			fmt.Fprintf(&b, `<text x="%.1f" y="%d" font-size="9" fill="#555">%s</text>`+"\n", at+2, top+8+marks%3*10, html.EscapeString(line.Name))
			marks++
			continue
		}
		colour := colours[drawn%len(colours)]
		var points []string
		for _, q := range line.Points {
			points = append(points, fmt.Sprintf("%.1f,%.1f", x(q.At), y(q.Value)))
		}
		fmt.Fprintf(&b, `<polyline fill="none" stroke="%s" stroke-width="1.5" points="%s"/>`+"\n", colour, strings.Join(points, " "))
		fmt.Fprintf(&b, `<text x="%d" y="%d" fill="%s">%s</text>`+"\n", left+drawn*150, height-12, colour, html.EscapeString(line.Name))
		drawn++
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// extent returns the first and the last time of a value, at least a second apart, and a round
// number above zero that no value exceeds.
func (p *Plot) extent() (firstAt, lastAt time.Duration, highest float64) {
	firstAt, highest = math.MaxInt64, 1e-9
	for _, line := range p.Lines {
		for _, q := range line.Points {
			if math.IsNaN(q.Value) {
				continue
			}
			firstAt, lastAt, highest = min(firstAt, q.At), max(lastAt, q.At), max(highest, q.Value)
		}
	}
	firstAt = min(firstAt, lastAt)
	unit := math.Pow(10, math.Floor(math.Log10(highest)))
	round := []float64{1, 2, 2.5, 5, 10}
	at, _ := slices.BinarySearchFunc(round, highest/unit, cmp.Compare[float64])
	return firstAt, max(lastAt, firstAt+time.Second), unit * round[min(at, len(round)-1)]
}
