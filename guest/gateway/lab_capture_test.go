package gateway

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// tokenPattern is what every attempt carries.
var tokenPattern = regexp.MustCompile(`(?i)tk[0-9a-f]{16}`)

// capture logs what comes in on the world's side of every wire: each kind of
// packet once, and each packet with a token. ARP is left out: it says who is
// there, and an agent can put nothing into it.
func capture() error {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, int(htons(unix.ETH_P_ALL)))
	if err != nil {
		return err
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 32<<20)
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1); err != nil {
		return err
	}
	go func() {
		c := &catch{known: map[string]bool{}, names: map[int]string{}}
		packet := make([]byte, 4096)
		for {
			n, from, err := unix.Recvfrom(fd, packet, 0)
			if err != nil {
				continue
			}
			if forget.Swap(false) {
				clear(c.known)
				report.event(event{Kind: "forgot"})
			}
			if at, ok := from.(*unix.SockaddrLinklayer); ok && at.Ifindex != 1 {
				c.take(at.Ifindex, packet[:n])
			}
		}
	}()
	return nil
}

// forget makes the log take for new what it has seen before.
var forget atomic.Bool

func htons(v uint16) uint16 { return v<<8 | v>>8 }

type catch struct {
	known map[string]bool
	names map[int]string
}

func (c *catch) take(index int, frame []byte) {
	to, ok := describe(frame)
	if !ok {
		return
	}
	name := c.names[index]
	if name == "" {
		i, err := net.InterfaceByIndex(index)
		if err != nil {
			return
		}
		name = i.Name
		c.names[index] = name
	}
	token := strings.ToLower(string(tokenPattern.Find(frame)))
	if key := name + to + token; !c.known[key] {
		c.known[key] = true
		report.event(event{Kind: "packet", From: name, Server: to, Text: token})
	}
}

// describe is where a frame goes: tcp 192.0.2.1:80, udp …, or the number of
// another protocol.
func describe(frame []byte) (string, bool) {
	if len(frame) < 34 {
		return "", false
	}
	var to netip.Addr
	var protocol byte
	var rest []byte
	switch binary.BigEndian.Uint16(frame[12:]) {
	case unix.ETH_P_ARP:
		return "", false
	case unix.ETH_P_IP:
		to, protocol = netip.AddrFrom4([4]byte(frame[30:34])), frame[23]
		rest = frame[min(14+int(frame[14]&15)*4, len(frame)):]
	case unix.ETH_P_IPV6:
		if len(frame) < 54 {
			return "", false
		}
		to, protocol, rest = netip.AddrFrom16([16]byte(frame[38:54])), frame[20], frame[54:]
	default:
		return fmt.Sprintf("ethertype %#04x", binary.BigEndian.Uint16(frame[12:])), true
	}
	if (protocol == unix.IPPROTO_TCP || protocol == unix.IPPROTO_UDP) && len(rest) >= 4 {
		name := map[byte]string{unix.IPPROTO_TCP: "tcp", unix.IPPROTO_UDP: "udp"}[protocol]
		return name + " " + netip.AddrPortFrom(to, binary.BigEndian.Uint16(rest[2:])).String(), true
	}
	return fmt.Sprintf("protocol %d %s", protocol, to), true
}
