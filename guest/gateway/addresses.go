package gateway

import (
	"container/list"
	"encoding/binary"
	"net/netip"
	"sync"

	"github.com/agent-container/agent-container/spec"
)

// maxNames bounds the names that have an address at one time besides those that
// are declared by themselves: whoever asks for ever new ones below a wildcard must
// not fill the memory.
const maxNames = 4096

// addresses gives each permitted name an address of its own out of the pool, and
// leads back from it. An address is never given to a second name: a program may
// keep it for as long as it runs. What is declared by itself keeps its address;
// of the others the one that was not used for the longest time loses it.
type addresses struct {
	mu     sync.Mutex
	byName map[string]*owner
	byAddr map[netip.Addr]*owner
	recent *list.List // of *owner: those that may lose their address, the last used in front
	next   uint32     // offset in the pool
}

type owner struct {
	name string
	addr netip.Addr
	at   *list.Element // nil: it is declared
}

func newAddresses(p *spec.Policy) *addresses {
	a := &addresses{byName: map[string]*owner{}, byAddr: map[netip.Addr]*owner{}, recent: list.New(), next: 1}
	for _, r := range p.Rules {
		if r.Name != "" && !r.Below && a.byName[r.Name] == nil {
			a.add(r.Name)
		}
	}
	return a
}

// of returns the address of name, which is canonical and permitted; false when
// the pool is used up.
func (a *addresses) of(name string) (netip.Addr, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := a.byName[name]; n != nil {
		a.use(n)
		return n.addr, true
	}
	if a.recent.Len() >= maxNames {
		oldest := a.recent.Remove(a.recent.Back()).(*owner)
		delete(a.byName, oldest.name)
		delete(a.byAddr, oldest.addr)
	}
	n := a.add(name)
	if n == nil {
		return netip.Addr{}, false
	}
	n.at = a.recent.PushFront(n)
	return n.addr, true
}

// add gives name the next address; nil when there is none.
func (a *addresses) add(name string) *owner {
	if a.next >= 1<<(32-spec.GatewayPool.Bits()) {
		return nil
	}
	base := spec.GatewayPool.Addr().As4()
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], binary.BigEndian.Uint32(base[:])+a.next)
	a.next++
	n := &owner{name: name, addr: netip.AddrFrom4(b)}
	a.byName[name], a.byAddr[n.addr] = n, n
	return n
}

func (a *addresses) use(n *owner) {
	if n.at != nil {
		a.recent.MoveToFront(n.at)
	}
}

// name leads back from an address.
func (a *addresses) name(addr netip.Addr) (string, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := a.byAddr[addr]
	if n == nil {
		return "", false
	}
	a.use(n)
	return n.name, true
}
