# A server that prints what reaches it, over TCP and UDP at each of PORTS.
import os, socket, threading

PORTS = [21, 22, 25, 53, 80, 443, 853, 1080, 2222, 2375, 3128, 5432, 6379, 8000, 8080, 9050, 49001, 49053]

def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\n").encode())  # a line at once: there are several who say

def answer(conn, port):
    conn.settimeout(5)
    try:
        say("tcp", port, conn.recv(200))
        conn.sendall(b"seen\n")
    except OSError as e:
        say("tcp", port, e)
    conn.close()

def tcp(port):
    s = socket.create_server(("0.0.0.0", port), backlog=64)
    while True:
        conn, _ = s.accept()
        threading.Thread(target=answer, args=(conn, port), daemon=True).start()

def udp(port):
    u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    u.bind(("0.0.0.0", port))
    while True:
        text, sender = u.recvfrom(200)
        say("udp", port, text)
        if port == 53:
            u.sendto(text, sender)  # so that who asks need not wait

threads = [threading.Thread(target=f, args=(p,)) for f in (tcp, udp) for p in PORTS]
for t in threads:
    t.start()
