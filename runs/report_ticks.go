package runs

import (
	"math"
	"strings"
	"time"
)

// steps are the distances between marks that a person can count by.
var steps = func() []float64 {
	list := []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30}
	for _, minutes := range []float64{1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720} {
		list = append(list, minutes*60)
	}
	for _, days := range []float64{1, 2, 7, 14, 30, 90, 180, 365} {
		list = append(list, days*86400)
	}
	return list
}()

// maxTicks is how many marks an axis has at most, beside the one at its start.
const maxTicks = 5

func (a axis) step() float64 {
	for _, s := range steps {
		if a.length/s <= maxTicks {
			return s
		}
	}
	return math.Ceil(a.length/maxTicks/86400) * 86400
}

// elapsedTicks count from the start of the axis.
func (a axis) elapsedTicks() []tick {
	step := a.step()
	list := []tick{newTick(0, "0")}
	for n := 1.0; n*step <= a.length; n++ {
		list = append(list, newTick(n*step/a.length, short(n*step)))
	}
	return list
}

// short is a duration without what is zero.
func short(s float64) string {
	text := duration(s)
	for _, zero := range []string{" 00 s", " 00 min", " 0 h"} {
		text = strings.TrimSuffix(text, zero)
	}
	return text
}

// clockTicks are times of day in UTC, or days.
func (a axis) clockTicks() []tick {
	step := a.step()
	end := a.from.Add(time.Duration(min(a.length, 200*365*86400) * 1e9))
	layout := "15:04"
	switch {
	case step >= 90*86400:
		layout = "Jan 2006"
	case step >= 86400:
		layout = "2 Jan"
	case a.from.UTC().Format(time.DateOnly) != end.UTC().Format(time.DateOnly):
		layout = "2 Jan 15:04"
	case step < 60:
		layout = "15:04:05"
	}
	var list []tick
	whole := int64(max(step, 1))
	for at := ceilTo(a.from.Unix(), whole); ; at += whole {
		x := (float64(at-a.from.Unix()) - float64(a.from.Nanosecond())/1e9) / a.length
		if x > 1 || len(list) > maxTicks {
			return list
		}
		if x >= 0 {
			list = append(list, newTick(x, time.Unix(at, 0).UTC().Format(layout)))
		}
	}
}

// ceilTo is the first multiple of step that is not before n.
func ceilTo(n, step int64) int64 {
	rest := n % step
	if rest < 0 {
		rest += step
	}
	if rest == 0 {
		return n
	}
	return n - rest + step
}

// newTick aligns a mark's text so that it stays inside.
func newTick(x float64, text string) tick {
	anchor := "middle"
	switch {
	case x < 0.08:
		anchor = "first"
	case x > 0.92:
		anchor = "last"
	}
	return tick{percent(x), text, anchor}
}
