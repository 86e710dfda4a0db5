"""A server and a client of RDS: each message is answered by the sum of its bytes."""
import hashlib
import socket
import sys

AF_RDS = 21
PORT = 4000
SIZES = [1, 100, 5000, 65536]

role, own = sys.argv[1:3]
end = socket.socket(AF_RDS, socket.SOCK_SEQPACKET, 0)
end.bind((own, PORT))
end.settimeout(20)
for size in SIZES:
    if role == "serve":
        data, peer = end.recvfrom(1 << 20)
        end.sendto(hashlib.sha256(data).digest(), peer)
    else:
        data = bytes((at * 7 + size) & 255 for at in range(size))
        end.sendto(data, (sys.argv[3], PORT))
        answer, _ = end.recvfrom(100)
        print(size, answer == hashlib.sha256(data).digest())
