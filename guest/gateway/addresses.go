package gateway

import (
	"encoding/binary"
	"net/netip"
	"sync"

	"github.com/agent-container/agent-container/spec"
)

// maxNames bounds the names that have an address at one time: whoever asks for
// ever new ones below a wildcard must not fill the memory.
const maxNames = 4096

// addresses gives each permitted name an address of its own out of the pool, and
// leads back from it. An address is never given to a second name: a program may
// keep it for as long as it runs.
type addresses struct {
	mu     sync.Mutex
	byName map[string]netip.Addr
	byAddr map[netip.Addr]string
	next   uint32 // offset in the pool
}

func newAddresses() *addresses {
	return &addresses{byName: map[string]netip.Addr{}, byAddr: map[netip.Addr]string{}, next: 1}
}

// of returns the address of name, which is canonical and permitted; false when
// no more are to be had.
func (a *addresses) of(name string) (netip.Addr, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if addr, ok := a.byName[name]; ok {
		return addr, true
	}
	if len(a.byName) >= maxNames {
		return netip.Addr{}, false
	}
	base := spec.GatewayPool.Addr().As4()
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], binary.BigEndian.Uint32(base[:])+a.next)
	addr := netip.AddrFrom4(b)
	a.next++
	a.byName[name], a.byAddr[addr] = addr, name
	return addr, true
}

// name leads back from an address.
func (a *addresses) name(addr netip.Addr) (string, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	name, ok := a.byAddr[addr]
	return name, ok
}
