# A server that prints what reaches it, over TCP on port 8000 and over UDP on 8000,
# on that of QUIC and on that of DNS.
import os, socket, threading

def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\n").encode())  # a line at once: there are several who say

def tcp():
    s = socket.create_server(("0.0.0.0", 8000))
    while True:
        conn, _ = s.accept()
        conn.settimeout(5)
        try:
            say("tcp", conn.recv(200))
            conn.sendall(b"seen\n")
        except OSError as e:
            say("tcp", e)
        conn.close()

def udp(port):
    u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    u.bind(("0.0.0.0", port))
    while True:
        say("udp", port, u.recvfrom(200)[0])

threading.Thread(target=tcp, daemon=True).start()
for port in (443, 53):
    threading.Thread(target=udp, args=(port,), daemon=True).start()
udp(8000)
