package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// agent is a process in a place that makes attempts.
type agent struct {
	*member
	mu      sync.Mutex
	results chan result
}

// order is one attempt to make.
type order struct {
	Row   string
	Try   int
	Token string
	Limit time.Duration
	Arg   string
}

// result is how it went, as the client saw it.
type result struct {
	Err  string
	Took time.Duration
	Says string // what the attempt found out
}

// The agents of a place: as people run agents, as a service that is root, and the
// lab itself, which may do anything.
var whos = map[string][]string{
	"uid 1000":         {"setpriv", "--reuid", "1000", "--regid", "1000", "--clear-groups", "--no-new-privs", "--bounding-set", "-all", "--inh-caps", "-all"},
	"uid 0, powerless": {"setpriv", "--clear-groups", "--no-new-privs", "--bounding-set", "-all", "--inh-caps", "-all"},
	"root":             nil,
}

// as returns the agent of a kind, which is started at its first use.
func (n *namespace) as(who string) *agent {
	n.mu.Lock()
	defer n.mu.Unlock()
	if a := n.agents[who]; a != nil {
		return a
	}
	a, err := n.newAgent(who)
	if err != nil {
		panic(err)
	}
	n.agents[who] = a
	return a
}

func (n *namespace) newAgent(who string) (*agent, error) {
	a := &agent{results: make(chan result, 1)}
	var err error
	prefix := append([]string{"nsenter", "--target", n.hold.pid(), "--net", "--mount"}, whos[who]...)
	a.member, err = n.lab.start("agent", n.lab.shared, func(line []byte) {
		var r result
		if err := json.Unmarshal(line, &r); err != nil {
			r.Err = fmt.Sprintf("lab: %v: %q", err, line)
		}
		a.results <- r
	}, prefix...)
	return a, err
}

// try makes an attempt and returns how it went.
func (a *agent) try(o order) (result, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if o.Limit == 0 {
		o.Limit = 8 * time.Second
	}
	if err := a.tell(o); err != nil {
		return result{}, err
	}
	select {
	case r := <-a.results:
		return r, nil
	case <-time.After(o.Limit + 20*time.Second):
		return result{}, errors.New("the agent does not come back")
	}
}

// runAgent makes the attempts that it is told to.
func runAgent() {
	net.DefaultResolver.PreferGo = true
	var s shared
	orders := make(chan order)
	readConfig(&s, func(line []byte) {
		var o order
		must(json.Unmarshal(line, &o))
		orders <- o
	})
	for o := range orders {
		report.event(attemptOnce(s, o))
	}
}

func attemptOnce(s shared, o order) (r result) {
	ctx, cancel := context.WithTimeout(context.Background(), o.Limit)
	defer cancel()
	a := &attempt{ctx: ctx, token: o.Token, arg: o.Arg, shared: s}
	begin := time.Now()
	defer func() {
		if p := recover(); p != nil {
			r.Err = fmt.Sprintf("panic: %v", p)
		}
		r.Took, r.Says = time.Since(begin), a.says
	}()
	if err := tryOf(o).do(a); err != nil {
		r.Err = err.Error()
	}
	return r
}

// runOnce makes one attempt in a process of its own, which may be in namespaces
// of its own and has no environment.
func runOnce() {
	_ = ip("link set lo up")
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	a := &attempt{ctx: ctx, token: os.Getenv("GATEWAY_LAB_TOKEN")}
	must(a.raw("198.51.100.66:8080", ""))
}

// elsewhere makes a connection to evil.test's address from a new process, with
// flags of clone(2).
func (a *attempt) elsewhere(clone uintptr) error {
	cmd := exec.CommandContext(a.ctx, "/proc/self/exe")
	cmd.Env = []string{roleVariable + "=once", "GATEWAY_LAB_TOKEN=" + a.token}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: clone}
	if clone&unix.CLONE_NEWUSER != 0 {
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}
