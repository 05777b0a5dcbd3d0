# A server that prints what reaches it, over TCP and UDP, on port 8000.
import socket, threading

def tcp():
    s = socket.create_server(("0.0.0.0", 8000))
    while True:
        conn, _ = s.accept()
        conn.settimeout(5)
        try:
            print("tcp", conn.recv(200), flush=True)
            conn.sendall(b"seen\n")
        except OSError as e:
            print("tcp", e, flush=True)
        conn.close()

threading.Thread(target=tcp, daemon=True).start()
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
u.bind(("0.0.0.0", 8000))
while True:
    print("udp", u.recvfrom(200)[0], flush=True)
