"""
Every verb between two devices at the ends of a cable, each end in turn the one that asks; what each asks for is looked at by the other.

    every-verb.py DEVICE GID_INDEX SERVICES LARGEST_BYTES             the one that waits
    every-verb.py DEVICE GID_INDEX SERVICES LARGEST_BYTES PEER        the one that calls

SERVICES are of RC,UC,UD.

Both ends tell each other of queue pairs and keys, and when to go on, by lines of JSON over TCP. A line of output for each kind of request
and service: what was asked for how often, and how many bytes it moved. The first thing that is not as it should be ends both.
"""
import hashlib
import json
import socket
import sys
import time

import pyverbs.enums as e
from pyverbs.addr import AH, AHAttr, GID, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR, MW, MWBindInfo
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import RecvWR, SendWR, SGE

TCP_PORT = 18515
GRH_BYTES = 40
QKEY = 0x11111111
IMMEDIATE = 0x01020304
PATIENCE_SECONDS = 120
MTUS = {256: e.IBV_MTU_256, 512: e.IBV_MTU_512, 1024: e.IBV_MTU_1024, 2048: e.IBV_MTU_2048, 4096: e.IBV_MTU_4096}
RIGHTS = (
    e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ | e.IBV_ACCESS_REMOTE_ATOMIC
)

device, gid_index, services, largest = sys.argv[1], int(sys.argv[2]), sys.argv[3].split(","), int(sys.argv[4])
is_caller = len(sys.argv) > 5


def fail(text):
    raise SystemExit(f"{device}: {text}")


class Peer:
    """The other end, by lines of JSON."""

    def __init__(self):
        if is_caller:
            end = socket.create_connection((sys.argv[5], TCP_PORT), timeout=PATIENCE_SECONDS)
        else:
            listener = socket.create_server(("", TCP_PORT))
            listener.settimeout(PATIENCE_SECONDS)
            end, _ = listener.accept()
        end.settimeout(PATIENCE_SECONDS)
        self.reader, self.writer = end.makefile("r"), end.makefile("w")

    def swap(self, value=None):
        """Tells the other end a value and takes its: both have come this far."""
        self.writer.write(json.dumps(value) + "\n")
        self.writer.flush()
        line = self.reader.readline()
        if line == "":
            fail("the other end has gone")
        return json.loads(line)


def pattern(seed, length):
    """Bytes that no other request of the run has."""
    block = hashlib.sha256(str(seed).encode()).digest()
    return (block * (length // len(block) + 1))[:length]


context = Context(name=device)
pd = PD(context)
region = MR(pd, largest + GRH_BYTES, RIGHTS | e.IBV_ACCESS_MW_BIND)
own_gid = str(context.query_gid(1, gid_index))
peer = Peer()
far = peer.swap({"gid": own_gid, "rkey": region.rkey, "address": region.buf})


class Pair:
    """A queue pair with a completion queue of its own, connected to the other end's."""

    def __init__(self, service, mtu):
        self.service = service
        self.mtu = mtu
        self.cq = CQ(context, 64)
        kind = {"RC": e.IBV_QPT_RC, "UC": e.IBV_QPT_UC, "UD": e.IBV_QPT_UD}[service]
        cap = QPCap(max_send_wr=8, max_recv_wr=8, max_send_sge=2, max_recv_sge=2)
        attributes = QPAttr(port_num=1)
        if service == "UD":
            attributes.qkey = QKEY
            attributes.pkey_index = 0
        else:
            attributes.qp_access_flags = RIGHTS if service == "RC" else RIGHTS & ~(
                e.IBV_ACCESS_REMOTE_READ | e.IBV_ACCESS_REMOTE_ATOMIC
            )
        self.qp = QP(pd, QPInitAttr(qp_type=kind, scq=self.cq, rcq=self.cq, cap=cap), attributes)
        self.far_qpn = peer.swap(self.qp.qp_num)
        route = GlobalRoute(dgid=GID(far["gid"]), sgid_index=gid_index, hop_limit=64)
        path = AHAttr(port_num=1, is_global=1, gr=route)
        if service == "UD":
            self.ah = AH(pd, attr=path)
            return
        attributes.path_mtu = MTUS[mtu]
        attributes.dest_qp_num = self.far_qpn
        attributes.rq_psn = attributes.sq_psn = 0xFFFFF0  # Some packets on, they wrap.
        attributes.ah_attr = path
        if service == "RC":
            attributes.max_rd_atomic = attributes.max_dest_rd_atomic = 4
            attributes.min_rnr_timer = 12
            attributes.timeout = 17
            attributes.retry_cnt = attributes.rnr_retry = 7
        self.qp.to_rts(attributes)

    def receive(self, length):
        offset = 0 if self.service == "UD" else GRH_BYTES
        entry = SGE(region.buf + offset, length + GRH_BYTES - offset, region.lkey)
        self.qp.post_recv(RecvWR(sg=[entry], num_sge=1))

    def completion(self):
        until = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < until:
            count, found = self.cq.poll()
            if count > 0:
                return found[0]
        fail(f"no completion on {self.service}")

    def completed(self, what):
        found = self.completion()
        if found.status != e.IBV_WC_SUCCESS:
            fail(f"{what}: status {found.status}")
        return found


def expect(what, seen, wanted):
    if seen != wanted:
        fail(f"{what}: {seen!r:.80}, expected {wanted!r:.80}")


def bytes_are(what, length, wanted):
    seen = region.read(length, GRH_BYTES)
    if seen != wanted:
        at = next(index for index in range(length) if seen[index] != wanted[index])
        fail(f"{what}: byte {at} of {length} is {seen[at]}, expected {wanted[at]}")


SENDS = {"SEND": e.IBV_WR_SEND, "SEND with immediate": e.IBV_WR_SEND_WITH_IMM}
WRITES = {"WRITE": e.IBV_WR_RDMA_WRITE, "WRITE with immediate": e.IBV_WR_RDMA_WRITE_WITH_IMM}
ATOMICS = {"compare and swap": e.IBV_WR_ATOMIC_CMP_AND_SWP, "fetch and add": e.IBV_WR_ATOMIC_FETCH_AND_ADD}


def message(pair, verb, length, seed, asks):
    """A SEND or WRITE, with immediate or without."""
    what = f"{verb} of {length} bytes on {pair.service}"
    data = pattern(seed, length)
    consumes = verb != "WRITE"
    region.write(data if asks else bytes(length), length, GRH_BYTES)
    if not asks and consumes:
        pair.receive(length)
    peer.swap()
    if asks:
        entry = SGE(region.buf + GRH_BYTES, length, region.lkey)
        request = SendWR(opcode={**SENDS, **WRITES}[verb], num_sge=1, sg=[entry])
        if verb in WRITES:
            request.set_wr_rdma(far["rkey"], far["address"] + GRH_BYTES)
        if pair.service == "UD":
            request.set_wr_ud(pair.ah, pair.far_qpn, QKEY)
        if verb.endswith("immediate"):
            request.imm_data = IMMEDIATE
        pair.qp.post_send(request)
        pair.completed(what)
    elif consumes:
        found = pair.completed(what)
        expect(f"{what}: length", found.byte_len, length + (GRH_BYTES if pair.service == "UD" else 0))
        has_immediate = found.wc_flags & e.IBV_WC_WITH_IMM != 0
        expect(f"{what}: immediate", has_immediate and found.imm_data, verb.endswith("immediate") and IMMEDIATE)
    peer.swap()
    # A WRITE on UC ends at its sender before it has come.
    if not asks and pair.service == "UC" and not consumes:
        until = time.monotonic() + 20
        while region.read(length, GRH_BYTES) != data and time.monotonic() < until:
            time.sleep(0.01)
    if not asks:
        bytes_are(what, length, data)
    peer.swap()


def read(pair, length, seed, asks):
    what = f"READ of {length} bytes"
    data = pattern(seed, length)
    region.write(bytes(length) if asks else data, length, GRH_BYTES)
    peer.swap()
    if asks:
        entry = SGE(region.buf + GRH_BYTES, length, region.lkey)
        request = SendWR(opcode=e.IBV_WR_RDMA_READ, num_sge=1, sg=[entry])
        request.set_wr_rdma(far["rkey"], far["address"] + GRH_BYTES)
        pair.qp.post_send(request)
        pair.completed(what)
        bytes_are(what, length, data)
    peer.swap()


def atomic(pair, verb, asks):
    """A comparison that is true and one that is not; an addition with a carry out of 32 bits."""
    before, operand, swap = 0x00000001FFFFFFFF, 0x00000001FFFFFFFF, 0x1122334455667788
    mask = 2**64 - 1
    for at in range(2):
        if verb == "fetch and add":
            after = (before + operand) & mask
        else:
            after = swap if before == operand else before
        if not asks:
            region.write(before.to_bytes(8, "little"), 8, GRH_BYTES)
        peer.swap()
        if asks:
            entry = SGE(region.buf + GRH_BYTES, 8, region.lkey)
            request = SendWR(opcode=ATOMICS[verb], num_sge=1, sg=[entry])
            request.set_wr_atomic(
                rkey=far["rkey"], addr=far["address"] + GRH_BYTES, compare_add=operand, swap=swap
            )
            pair.qp.post_send(request)
            pair.completed(verb)
            bytes_are(f"{verb} {at}: what was there", 8, before.to_bytes(8, "little"))
        peer.swap()
        if not asks:
            bytes_are(f"{verb} {at}: what is there", 8, after.to_bytes(8, "little"))
        before = after
        peer.swap()


def invalidate(pair, asks):
    """A window is written through, taken away by a SEND with Invalidate, and is no more."""
    length = min(4096, largest)
    key = None
    if not asks:
        window = MW(pd, e.IBV_MW_TYPE_2)
        bind = SendWR(opcode=e.IBV_WR_BIND_MW)
        rights = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE
        bind.set_bind_wr(window, MWBindInfo(region, region.buf + GRH_BYTES, length, rights))
        pair.qp.post_send(bind)
        pair.completed("bind")
        key = bind.rkey
        region.write(bytes(length), length, GRH_BYTES)
        pair.receive(length)
    told = peer.swap(key)
    data = pattern("window", length)
    if asks:
        region.write(data, length, GRH_BYTES)
        entry = SGE(region.buf + GRH_BYTES, length, region.lkey)
        write = SendWR(opcode=e.IBV_WR_RDMA_WRITE, num_sge=1, sg=[entry])
        write.set_wr_rdma(told, far["address"] + GRH_BYTES)
        pair.qp.post_send(write)
        pair.completed("WRITE through a window")
        peer.swap()
        peer.swap()
        send = SendWR(opcode=e.IBV_WR_SEND_WITH_INV, num_sge=1, sg=[entry])
        send.imm_data = told
        pair.qp.post_send(send)
        pair.completed("SEND with Invalidate")
        peer.swap()
        pair.qp.post_send(write)
        expect("WRITE through a window that is gone: status", pair.completion().status, e.IBV_WC_REM_ACCESS_ERR)
    else:
        peer.swap()
        bytes_are("WRITE through a window", length, data)
        peer.swap()
        found = pair.completed("receive of a SEND with Invalidate")
        # Soft-RoCE says it to users in the kernel alone (drivers/infiniband/sw/rxe/rxe_resp.c, do_complete).
        if not device.startswith("rxe"):
            expect("SEND with Invalidate: flag", found.wc_flags & e.IBV_WC_WITH_INV, e.IBV_WC_WITH_INV)
            expect("SEND with Invalidate: key", found.imm_data, key)
        peer.swap()
    peer.swap()


def sizes_of(pair):
    """Nothing, a byte, what is no whole dword, a packet and a byte more, many packets, the largest."""
    if pair.service == "UD":
        return [1, 63, pair.mtu]
    return [1, 63, pair.mtu, pair.mtu + 1, 7 * pair.mtu + 5]


def said(pair, verb, lengths):
    print(f"{verb} on {pair.service}, path MTU {pair.mtu}: {len(lengths)} each way, {sum(lengths)} bytes", flush=True)


def all_of(service, mtu, verbs):
    pair = Pair(service, mtu)
    for verb in verbs:
        lengths = sizes_of(pair)
        if service == "RC" and mtu == 4096:
            lengths.append(largest)
        for length in lengths:
            for asks in (is_caller, not is_caller):
                seed = f"{service} {mtu} {verb} {length} {asks == is_caller}"
                if verb == "READ":
                    read(pair, length, seed, asks)
                else:
                    message(pair, verb, length, seed, asks)
        said(pair, verb, lengths)
    return pair


if "RC" in services:
    for mtu in MTUS:
        reliable = all_of("RC", mtu, [*SENDS, *WRITES, "READ"])
    for verb in ATOMICS:
        for asks in (is_caller, not is_caller):
            atomic(reliable, verb, asks)
        said(reliable, verb, [8, 8])
    for asks in (is_caller, not is_caller):
        invalidate(Pair("RC", 4096), asks)
    said(reliable, "SEND with Invalidate", [min(4096, largest)])
if "UC" in services:
    all_of("UC", 1024, [*SENDS, *WRITES])
if "UD" in services:
    all_of("UD", 1024, SENDS)
peer.swap()
print("all as it should be", flush=True)
