# Tries to get a token to ADDRESS in every way that a program may have, and
# prints one line for each: what was tried, and what came of it.
import ctypes, os, socket, struct, sys

address, token = sys.argv[1], sys.argv[2].encode()
MARK = 0x61670001

def attempt(name, do):
    try:
        do()
        print(name, "done", flush=True)
    except OSError as e:
        print(name, e.strerror or e, flush=True)

def tcp(mark=None, port=8000, to=None):
    s = socket.socket()
    s.settimeout(2)
    if mark is not None:
        s.setsockopt(socket.SOL_SOCKET, 36, mark)  # SO_MARK
    s.connect((to or address, port))
    s.sendall(token + b" tcp")
    s.recv(10)

def udp(port, mark=None):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    if mark is not None:
        s.setsockopt(socket.SOL_SOCKET, 36, mark)
    s.sendto(token + b" udp", (address, port))

def question():
    # A name that holds the token, asked at the resolver and at the witness.
    q = struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0) + bytes([len(token)]) + token + b"\x07example\x00\x00\x01\x00\x01"
    for server in ("127.0.0.11", address):
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.settimeout(20)
        s.sendto(q, (server, 53))
        print("answer", s.recv(512)[3] & 15, flush=True)

def ping(kind):
    s = socket.socket(socket.AF_INET, kind, socket.IPPROTO_ICMP)
    s.sendto(b"\x08\x00" + struct.pack(">H", 0xf7ff) + b"\x00\x00\x00\x00" + token, (address, 0))

def packet():
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    s.bind(("eth0", 0))
    s.send(b"\xff" * 12 + b"\x08\x00" + token)

def netfilter():
    s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12)  # NETLINK_NETFILTER
    # Delete every table: NFT_MSG_DELTABLE of all families, in one transaction.
    def message(kind, body=b"", flags=5):
        return struct.pack("=IHHII", 16 + 4 + len(body), kind, flags, 1, 0) + b"\x00\x00\x00\x0a"[:4] + body
    s.send(message(16) + message(10 << 8 | 2) + message(17))
    answer = s.recv(4096)
    code = -struct.unpack_from("=i", answer, 16)[0]
    if code:
        raise OSError(code, os.strerror(code))

def unshare():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(0x10000000 | 0x40000000):  # a user and a network namespace
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

def hosts():
    # The file is one for all in the namespace; root may write it.
    with open("/etc/hosts", "a") as f:
        f.write(address + " spoofed.example\n")
    s = socket.create_connection(("spoofed.example", 80), 2)
    s.sendall(b"GET /" + token + b" HTTP/1.1\r\nHost: spoofed.example\r\n\r\n")
    s.recv(10)

def resolver():
    # The port at which the engine's resolver really listens, if it is reached.
    for port in range(32768, 61000):
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.setblocking(False)
        try:
            s.connect(("127.0.0.11", port))
            s.send(bytes(12))
            s.recv(1)
        except BlockingIOError:
            pass
        except OSError:
            continue
        finally:
            s.close()

def write(path):
    with open(path, "w") as f:
        f.write("1")

PORTS = [21, 22, 25, 53, 80, 443, 853, 1080, 2222, 2375, 3128, 5432, 6379, 8000, 8080, 9050, 49001, 49053]
for port in PORTS:
    attempt("tcp %d" % port, lambda: tcp(port=port))
    attempt("udp %d" % port, lambda: udp(port))
attempt("tcp by name", lambda: tcp(to="witness"))
attempt("tcp with the mark", lambda: tcp(MARK))
attempt("udp with the mark", lambda: udp(8000, MARK))
attempt("tcp to the gateway's port", lambda: tcp(port=49001, to="127.0.0.1"))
attempt("dns", question)
attempt("resolver", resolver)
attempt("hosts", hosts)
attempt("ping", lambda: ping(socket.SOCK_DGRAM))
attempt("raw", lambda: ping(socket.SOCK_RAW))
attempt("packet", packet)
attempt("vsock", lambda: socket.socket(40, 1))
attempt("sctp", lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132))
attempt("nft", netfilter)
attempt("unshare", unshare)
attempt("ip_forward", lambda: write("/proc/sys/net/ipv4/ip_forward"))
attempt("ipv6", lambda: socket.create_connection(("2001:db8::1", 80), 2))
attempt("ipv4 in ipv6", lambda: socket.create_connection(("::ffff:" + address, 8000), 2).sendall(token))
