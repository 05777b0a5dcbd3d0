# Tries from its first moment to reach every address of its network at port 8000,
# and goes on; it listens there itself.
import ipaddress, socket, threading, time

def addresses():
    own = socket.gethostbyname(socket.gethostname())
    return [str(a) for a in ipaddress.ip_network(own + "/28", strict=False).hosts() if str(a) != own]

def attempt(address):
    try:
        s = socket.create_connection((address, 8000), 1)
        s.sendall(b"escaped from " + socket.gethostname().encode())
        s.recv(10)
        s.close()
    except OSError:
        pass

def go_on():
    while True:
        threads = [threading.Thread(target=attempt, args=(a,)) for a in addresses()]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        time.sleep(0.05)

threading.Thread(target=go_on, daemon=True).start()
listener = socket.create_server(("127.0.0.1", 8000))
while True:
    listener.accept()[0].close()
