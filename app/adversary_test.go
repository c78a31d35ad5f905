package app

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wva-project/wva/planner"
)

var (
	adversaryFor    = flag.Duration("adversary.for", 0, "how long TestAdversary plays rounds; 0: a few rounds only")
	adversarySeed   = flag.Uint64("adversary.seed", 1, "the seed of the first round of TestAdversary")
	adversaryRounds = flag.Int("adversary.rounds", 0, "how many rounds TestAdversary plays; 0: 2, or as many as adversary.for allows")
)

// A hostile tenant plays against a well-behaved one, in rounds of random moves over ten minutes of
// virtual time: with objects, pods, metrics and gateways of its own, through the manifests, the
// collector and the planner of the server. `make adversary` plays for longer.
func TestAdversary(t *testing.T) {
	rounds := *adversaryRounds
	if rounds == 0 && *adversaryFor == 0 {
		rounds = 2
	}
	started, last := time.Now(), time.Now()
	var next atomic.Int64
	var progress sync.Mutex // guards last, played and seen
	played, seen := 0, tally{}
	var workers sync.WaitGroup
	for range min(4, runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			for !t.Failed() && (*adversaryFor == 0 || time.Since(started) < *adversaryFor) {
				i := next.Add(1) - 1
				if rounds > 0 && i >= int64(rounds) {
					return
				}
				seed := *adversarySeed + uint64(i)
				r, err := playRound(t, seed, all)
				if err != nil {
					reportFailure(t, seed, err)
					return
				}
				progress.Lock()
				played++
				seen.add(r.seen)
				if *adversaryFor > 0 && time.Since(last) > 10*time.Second {
					last = time.Now()
					fmt.Printf("adversary: %d rounds in %v, seed %d, %+v\n", played, time.Since(started).Round(time.Second), seed, seen)
				}
				progress.Unlock()
			}
		})
	}
	workers.Wait()
	if played >= 20 && (seen.contended < seen.cycles/10 || seen.yielded < seen.cycles/20) {
		t.Errorf("%d rounds are one-sided: %+v", played, seen)
	}
	t.Logf("%d rounds in %v, %+v", played, time.Since(started).Round(time.Millisecond), seen)
}

func all(int) bool { return true }

// playRound plays the round of a seed with those of its moves that are kept.
func playRound(t *testing.T, seed uint64, keep func(i int) bool) (_ *round, err error) {
	directory, err := os.MkdirTemp(t.TempDir(), "round")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(directory)
	r, err := newRound(seed, directory, keep)
	if err != nil {
		return nil, err
	}
	err = r.play(t.Context())
	if closing := r.close(); err == nil {
		err = closing
	}
	return r, err
}

// reportFailure leaves out moves as long as the round still fails, and reports the rest.
func reportFailure(t *testing.T, seed uint64, err error) {
	t.Logf("seed %d: %v", seed, err) // to leave out moves takes a while
	left := make(map[int]bool)
	keep := func(i int) bool { return !left[i] }
	failed, _ := playRound(t, seed, keep)
	for i := range mostMoves {
		left[i] = true
		if r, still := playRound(t, seed, keep); still != nil {
			failed, err = r, still
		} else {
			delete(left, i)
		}
	}
	text := failed.describe()
	file := filepath.Join(os.TempDir(), fmt.Sprintf("adversary-%d.json", seed))
	if snapshot, decided := failed.both.server.loop.Snapshot(); decided {
		if data, encoding := planner.EncodeInput(planner.Input{Snapshot: snapshot, Policy: failed.both.server.settings.Load().policy}); encoding == nil && os.WriteFile(file, data, 0o600) == nil {
			text = fmt.Sprintf("the input of the plan is in %s: go run ./cmd/wvactl plan %[1]s\n%s", file, text)
		}
	}
	t.Errorf("seed %d: %v\nreplay with: make adversary ARGS='-adversary.seed %[1]d -adversary.rounds 1'\n%[3]s", seed, err, text)
}
