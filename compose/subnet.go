package compose

import (
	"fmt"
	"net/netip"
)

// subnetBits is the size of a deployment's own network: 13 usable addresses.
const subnetBits = 28

// FreeSubnet returns the first /28 of pool that overlaps none of taken.
func FreeSubnet(pool netip.Prefix, taken []netip.Prefix) (netip.Prefix, error) {
	candidate := netip.PrefixFrom(pool.Masked().Addr(), subnetBits)
	for range 1 << 20 { // more than any IPv4 pool of /28 that can be configured in practice
		if !pool.Contains(candidate.Addr()) {
			break
		}
		if !overlapsAny(candidate, taken) {
			return candidate, nil
		}
		candidate = netip.PrefixFrom(after(candidate), subnetBits)
	}
	return netip.Prefix{}, fmt.Errorf("no free /%d is left in %s", subnetBits, pool)
}

func overlapsAny(p netip.Prefix, taken []netip.Prefix) bool {
	for _, t := range taken {
		if t.Overlaps(p) {
			return true
		}
	}
	return false
}

// after returns the first address behind p.
func after(p netip.Prefix) netip.Addr {
	b := p.Addr().As4()
	n := uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
	n += 1 << (32 - subnetBits)
	return netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
}

// ParsePool reads a subnet_pool setting: an IPv4 prefix that holds at least one
// /28.
func ParsePool(text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	if err != nil || !p.Addr().Is4() || p.Bits() > subnetBits || p.Bits() < 8 {
		return netip.Prefix{}, fmt.Errorf("%q is not an IPv4 network between /8 and /%d", text, subnetBits)
	}
	return p.Masked(), nil
}
