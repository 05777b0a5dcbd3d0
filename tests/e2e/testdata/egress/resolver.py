# Writes another resolver into the file that all in the namespace share, whenever
# the engine has written it, and says so on port 8000.
import os, socket, threading, time

# An address of the namespace itself, at which nobody answers.
evil = "nameserver {0}\n# ExtServers: [{0}]\n".format(socket.gethostbyname(socket.gethostname())).encode()

def write():
    fd = os.open("/etc/resolv.conf", os.O_RDWR)
    while True:
        if os.pread(fd, len(evil) + 1, 0) != evil:
            os.ftruncate(fd, 0)
            os.pwrite(fd, evil, 0)
        time.sleep(0.0005)

threading.Thread(target=write, daemon=True).start()
s = socket.create_server(("127.0.0.1", 8000))
time.sleep(1e6)
