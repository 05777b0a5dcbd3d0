package main

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/renameio/v2"

	"github.com/agent-container/agent-container/spec"
)

// openRecord writes the record of an attempt, first thing, so that a run that
// dies early has one. Idle containers have no run to record.
func (g *guest) openRecord(attempt int) error {
	if g.mode == spec.Idle {
		return nil
	}
	if err := g.closeStale(); err != nil {
		say("warning: %v", err) // an agent can spoil its record; it must not spoil the next start
	}
	if err := g.pruneRuns(); err != nil {
		say("warning: %v", err)
	}
	random := make([]byte, 4)
	if _, err := rand.Read(random); err != nil {
		return err
	}
	now := time.Now().UTC()
	r := &spec.Record{
		Schema: spec.RecordSchema, ID: spec.NewRecordID(now, random), Deployment: g.name, Kind: g.mode,
		Agent: g.agent.Name, AgentVersion: g.agentVersion(), StartedAt: now,
	}
	if g.mode == spec.Headless {
		r.Attempt = attempt
	}
	j, jobErr := g.job()
	// A session that begins again does not get its task again.
	again := g.mode == spec.Interactive && exists(g.fill(spec.FileConsumed))
	if task, err := os.ReadFile(g.fill(spec.FillTask)); err == nil && !again {
		r.SetTask(task, j.RecordTask)
	}
	if err := g.writeRecord(r); err != nil {
		return err
	}
	for _, file := range []string{g.fill(spec.FileRunID), filepath.Join(g.runsDir, spec.FileCurrent)} {
		if err := renameio.WriteFile(file, []byte(r.ID), 0o600); err != nil {
			return err
		}
	}
	return jobErr
}

// What is kept on the runs volume: less than what the host reads of it, so that
// it reads all. The host keeps its own copies for longer.
const (
	volumeRecords  = 500
	volumeAttached = 20 // runs with their output and changes
	volumeBytes    = 96 << 20
)

// pruneRuns removes the oldest records from the volume.
func (g *guest) pruneRuns() error {
	entries, err := os.ReadDir(g.runsDir)
	if err != nil {
		return err
	}
	var errs error
	runs, bytes, id := 0, int64(0), ""
	for _, e := range slices.Backward(entries) { // ids sort by time
		info, err := e.Info()
		if err != nil || e.Name() == spec.FileCurrent {
			continue
		}
		if !info.Mode().IsRegular() { // not ours; it would take the host's room for records
			errs = errors.Join(errs, os.RemoveAll(filepath.Join(g.runsDir, e.Name())))
			continue
		}
		suffix := filepath.Ext(e.Name())
		if name := strings.TrimSuffix(e.Name(), suffix); name != id {
			id = name
			runs++
		}
		bytes += info.Size()
		if runs > volumeRecords || bytes > volumeBytes || runs > volumeAttached && suffix != ".json" {
			errs = errors.Join(errs, os.Remove(filepath.Join(g.runsDir, e.Name())))
		}
	}
	return errs
}

// closeStale ends a record that a killed container left open.
func (g *guest) closeStale() error {
	r, err := g.currentRecord()
	if err != nil || r == nil || r.EndedAt != nil {
		return err
	}
	r.Finish(spec.OutcomeLost, spec.CauseLost, nil, time.Now())
	r.Notes = append(r.Notes, "the container ended without closing this record; closed when it started again")
	return g.writeRecord(r)
}

// currentRecord reads the record of this container's run, or nil when there is
// none.
func (g *guest) currentRecord() (*spec.Record, error) {
	id, err := os.ReadFile(g.fill(spec.FileRunID))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !spec.ValidRecordID(string(id)) {
		return nil, fmt.Errorf("%s holds no record id", g.fill(spec.FileRunID))
	}
	b, err := os.ReadFile(g.recordPath(string(id)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var r spec.Record
	return &r, wrap("record "+string(id), json.Unmarshal(b, &r))
}

func (g *guest) recordPath(id string) string { return g.runFile(id, ".json") }

// runFile is the path of a file that belongs to a run.
func (g *guest) runFile(id, suffix string) string { return filepath.Join(g.runsDir, id+suffix) }

func (g *guest) writeRecord(r *spec.Record) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return wrap("record", renameio.WriteFile(g.recordPath(r.ID), append(b, '\n'), 0o600))
}

// updateRecord changes the current record; without one it does nothing.
func (g *guest) updateRecord(change func(*spec.Record)) error {
	r, err := g.currentRecord()
	if err != nil || r == nil {
		return err
	}
	change(r)
	return g.writeRecord(r)
}

// closeRecord ends the current record, then adds what the repository says: the
// end is written before anything that can take time.
func (g *guest) closeRecord(outcome spec.Outcome, cause spec.Cause, code *int, notes ...string) error {
	err := g.updateRecord(func(r *spec.Record) {
		r.Finish(outcome, cause, code, time.Now())
		for _, n := range notes {
			r.Notes = append(r.Notes, spec.Printable(strings.TrimSpace(n), 2000))
		}
	})
	if err != nil {
		return err
	}
	return g.updateRecord(g.completeRepository)
}
