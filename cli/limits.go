package cli

import (
	"slices"

	ucli "github.com/urfave/cli/v2"

	"github.com/agent-container/agent-container/settings"
	"github.com/agent-container/agent-container/spec"
)

// limit is a row of the table of what bounds a deployment: a flag, the setting
// that counts when it is not typed, and its place in the spec, by name and by set.
type limit struct {
	flag, key, field, usage string

	set func(s *spec.Spec, text string) error // "" takes the limit away
}

// limits is that table.
var limits = []limit{
	{"memory", "limits.memory", "limits.memory_bytes", "memory of the agent's container: `SIZE` such as 4g, or none", func(s *spec.Spec, text string) (err error) {
		s.Limits.MemoryBytes, err = orZero(settings.ParseBytes, text)
		return err
	}},
	{"cpus", "limits.cpus", "limits.cpus", "processors of the agent's container: `N` such as 1.5, or none", func(s *spec.Spec, text string) (err error) {
		s.Limits.CPUs, err = orZero(settings.ParseCPUs, text)
		return err
	}},
	{"pids", "limits.pids", "limits.pids", "processes of each container", func(s *spec.Spec, text string) (err error) {
		s.Limits.Pids, err = settings.ParsePids(text)
		return err
	}},
	{"timeout", "limits.timeout", "limits.timeout", "end a job after `D` such as 30m, all attempts together, with 124; or none", func(s *spec.Spec, text string) (err error) {
		s.Limits.Run, err = orZero(spec.ParseDuration, text)
		return err
	}},
	{"idle-timeout", "limits.idle_timeout", "limits.idle_timeout", "end a job that writes nothing for `D`, with 124; or none", func(s *spec.Spec, text string) (err error) {
		s.Limits.Idle, err = orZero(spec.ParseDuration, text)
		return err
	}},
	{"start-timeout", "limits.start_timeout", "limits.start_timeout", "give up a phase of the set-up after `D` without progress", func(s *spec.Spec, text string) (err error) {
		s.Limits.Start, err = spec.ParseDuration(text)
		return err
	}},
	{"headless-restart", "headless_restart", "restart", "start a failed job again: `POLICY` no, on-failure or on-failure:N; every attempt is billed", func(s *spec.Spec, text string) (err error) {
		s.Restart, err = spec.ParseRestart(text)
		return err
	}},
}

// orZero parses text, and takes an empty one for the zero value.
func orZero[T any](parse func(string) (T, error), text string) (T, error) {
	var zero T
	if text == "" {
		return zero, nil
	}
	return parse(text)
}

func limitFlags() []ucli.Flag {
	var list []ucli.Flag
	for _, l := range limits {
		list = append(list, &ucli.StringFlag{Name: l.flag, Usage: l.usage})
	}
	return list
}

// limitSettings takes the limits of the settings into s, but for those that
// were typed when it was deployed.
func (a *app) limitSettings(s *spec.Spec) error {
	for _, l := range limits {
		if slices.Contains(s.Typed, l.flag) {
			continue
		}
		if err := l.set(s, a.settings.Get(l.key).Text); err != nil {
			return refuse("correct it in settings.yaml", "%s: %w", l.key, err)
		}
	}
	return nil
}

// typedLimits puts the typed limits over s.
func typedLimits(s *spec.Spec, c *ucli.Context) error {
	s.Typed = slices.Clone(s.Typed)
	for _, l := range limits {
		if !c.IsSet(l.flag) {
			continue
		}
		text := c.String(l.flag)
		if text == "" {
			return refuse("write --"+l.flag+" none to have none", "--%s is empty", l.flag)
		}
		if text == "none" {
			text = ""
		}
		if err := l.set(s, text); err != nil && text == "" {
			return refuse("see: agent-container up --help", "--%s cannot be none", l.flag)
		} else if err != nil {
			return refuse("see: agent-container up --help", "--%s: %w", l.flag, err)
		}
		s.Typed = append(s.Typed, l.flag)
	}
	slices.Sort(s.Typed)
	s.Typed = slices.Compact(s.Typed)
	return nil
}
