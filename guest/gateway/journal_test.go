package gateway

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agent-container/agent-container/spec"
)

// A flood must not make the journal longer than its burst and its rate, however long
// it lasts; every decision must be a line or be counted, and the last be a line.
func TestJournalInALongFlood(t *testing.T) {
	for every, lasts := range map[time.Duration]time.Duration{
		time.Millisecond:       time.Minute,
		40 * time.Millisecond:  5 * time.Minute, // a little more than the rate
		500 * time.Microsecond: time.Second / 2,
	} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			j := newJournal(&out, time.Now)
			begin, asked, last := time.Now(), 0, ""
			for ; time.Since(begin) < lasts; time.Sleep(every) {
				last = fmt.Sprintf("n%d.evil.test", asked)
				j.write(Decision{Verdict: spec.Denied, Stage: spec.StageDNS, Name: last})
				asked++
			}
			time.Sleep(journalPause)
			synctest.Wait()
			lines, said, final := 0, 0, Decision{}
			for in := bufio.NewScanner(&out); in.Scan(); lines++ {
				final = Decision{}
				if err := json.Unmarshal(in.Bytes(), &final); err != nil {
					t.Fatal(err)
				}
				if said++; final.Stage == spec.StageJournal {
					said += final.Left - 1
				}
			}
			if most := journalBurst + int(time.Since(begin).Seconds()*journalRate); lines > most {
				t.Errorf("%d decisions, one every %s, are %d lines, want at most %d", asked, every, lines, most)
			}
			if said != asked || final.Name != last {
				t.Errorf("%d decisions, one every %s: %d are told, the last of them %s, want %s", asked, every, said, final.Name, last)
			}
		})
	}
}
