"""
Makes mistakes as programs of libibverbs make them, each on queue pairs of its own, between two devices and over their cable.

    mistakes.py REQUESTER RESPONDER

Prints, as a line of JSON, the queue pair of each mistake by the mistake's name; what is wrong is to be found out at the devices.
"""
import json
import sys
import time

import pyverbs.enums as e
from pyverbs.addr import AH, AHAttr
from pyverbs.cq import CQ, CompChannel
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import RecvWR, SendWR, SGE

PATIENCE_SECONDS = 30
QKEY = 0x11111111
ALL = (
    e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ | e.IBV_ACCESS_REMOTE_ATOMIC
)
BYTES = 65536


class Device:
    def __init__(self, name):
        self.context = Context(name=name)
        self.lid = self.context.query_port(1).lid
        self.pd = PD(self.context)
        self.mr = MR(self.pd, BYTES, ALL)


near, far = Device(sys.argv[1]), Device(sys.argv[2])
kept = []
found = {}


class End:
    """A queue pair with a completion queue, in RESET."""

    def __init__(self, device, kind=e.IBV_QPT_RC, entries=64, rights=ALL, pd=None, channel=None):
        self.device = device
        self.cq = CQ(device.context, entries, None, channel, 0)
        cap = QPCap(max_send_wr=16, max_recv_wr=16, max_send_sge=1, max_recv_sge=1)
        self.attributes = QPAttr(port_num=1)
        if kind == e.IBV_QPT_UD:
            self.attributes.qkey, self.attributes.pkey_index = QKEY, 0
        else:
            self.attributes.qp_access_flags = rights
        init = QPInitAttr(qp_type=kind, scq=self.cq, rcq=self.cq, cap=cap)
        self.qp = QP(pd or device.pd, init, self.attributes)
        kept.append(self)

    def connect(self, device, qpn, **changed):
        attributes = self.attributes
        values = dict(
            path_mtu=e.IBV_MTU_2048,
            dest_qp_num=qpn,
            rq_psn=100,
            sq_psn=100,
            ah_attr=AHAttr(port_num=1, is_global=0, dlid=device.lid),
            max_rd_atomic=4,
            max_dest_rd_atomic=4,
            min_rnr_timer=10,
            timeout=10,
            retry_cnt=2,
            rnr_retry=2,
        )
        for name, value in {**values, **changed}.items():
            setattr(attributes, name, value)
        self.qp.to_rts(attributes)

    def receive(self, length=256, lkey=None):
        mr = self.device.mr
        self.qp.post_recv(RecvWR(sg=[SGE(mr.buf, length, mr.lkey if lkey is None else lkey)], num_sge=1))

    def send(self, opcode=e.IBV_WR_SEND, length=64, lkey=None, rkey=None, address=None):
        mr = self.device.mr
        request = SendWR(opcode=opcode, num_sge=1, sg=[SGE(mr.buf, length, mr.lkey if lkey is None else lkey)])
        if opcode != e.IBV_WR_SEND:
            request.set_wr_rdma(far.mr.rkey if rkey is None else rkey, far.mr.buf if address is None else address)
        self.qp.post_send(request)

    def take(self):
        """The status of the next completion; None where there is none in time."""
        until = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < until:
            count, completions = self.cq.poll()
            if count:
                return completions[0].status
        return None


def pair(one_changed=None, other_changed=None, **other_made):
    one, other = End(near), End(far, **other_made)
    one.connect(far, other.qp.qp_num, **(one_changed or {}))
    other.connect(near, one.qp.qp_num, **(other_changed or {}))
    return one, other


def mistake(name, one, failed=True):
    status = one.take()
    if (status != e.IBV_WC_SUCCESS) != failed:
        raise SystemExit(f"{name}: status {status}")
    found[name] = one.qp.qp_num


WRITE = e.IBV_WR_RDMA_WRITE

one, other = pair()
one.send(WRITE)
if one.take() != e.IBV_WC_SUCCESS:
    raise SystemExit("a WRITE without a mistake failed")
found["none"] = one.qp.qp_num

one, other = pair(dict(dest_qp_num=0x7777))
one.send(WRITE)
mistake("wrong-qpn", one)

one, other = pair(dict(ah_attr=AHAttr(port_num=1, is_global=0, dlid=0x55)))
one.send(WRITE)
mistake("wrong-lid", one)

one, other = pair(dict(sq_psn=150))
one.send(WRITE)
mistake("psn", one)

one, other = End(near), End(far)
one.connect(far, other.qp.qp_num)
one.send(WRITE)
mistake("peer-qp-state", one)

one, other = pair()
other.qp.close()
one.send(WRITE)
mistake("peer-qp-destroyed", one)

one, other = pair()
one.send()
mistake("no-receive", one)

one, other = pair()
other.receive(100)
one.send(length=200)
mistake("receive-too-short", one)

one, other = pair()
one.send(WRITE, rkey=0xABCDEF00)
mistake("remote-key-unknown", one)

one, other = pair()
short = MR(far.pd, 4096, ALL)
kept.append(short)
one.send(WRITE, length=8192, rkey=short.rkey, address=short.buf)
mistake("remote-too-short", one)

one, other = pair()
gone = MR(far.pd, 4096, ALL)
address, rkey = gone.buf, gone.rkey
gone.close()
one.send(WRITE, rkey=rkey, address=address)
mistake("remote-key-deregistered", one)

one, other = pair()
narrow = MR(far.pd, 4096, e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_READ)
kept.append(narrow)
one.send(WRITE, rkey=narrow.rkey, address=narrow.buf)
mistake("remote-right-missing", one)

one, other = pair()
foreign_pd = PD(far.context)
foreign = MR(foreign_pd, 4096, ALL)
kept += [foreign_pd, foreign]
one.send(WRITE, rkey=foreign.rkey, address=foreign.buf)
mistake("remote-wrong-pd", one)

one, other = pair(rights=e.IBV_ACCESS_REMOTE_READ)
one.send(WRITE)
mistake("qp-right-missing", one)

one, other = pair()
one.send(WRITE, lkey=0x12345600)
mistake("local-key-unknown", one)

one, other = pair(dict(path_mtu=e.IBV_MTU_2048), dict(path_mtu=e.IBV_MTU_256))
one.send(WRITE, length=2000)
mistake("mtu-mismatch", one)

# The responder's completion queue is full: its queue pairs end, and nobody answers.
one, other = pair(entries=1)
for _ in range(8):
    other.receive()
for _ in range(8):
    one.send()
    if one.take() != e.IBV_WC_SUCCESS:
        break
    time.sleep(0.05)
found["cq-overrun"] = other.qp.qp_num

one, other = End(near, e.IBV_QPT_UD), End(far, e.IBV_QPT_UD)
ah = AH(near.pd, attr=AHAttr(port_num=1, is_global=0, dlid=far.lid))
other.receive()
request = SendWR(opcode=e.IBV_WR_SEND, num_sge=1, sg=[SGE(near.mr.buf, 64, near.mr.lkey)])
request.set_wr_ud(ah, other.qp.qp_num, 0x2222)
one.qp.post_send(request)
mistake("ud-qkey", one, failed=False)
found["ud-qkey"] = other.qp.qp_num

# A timeout of 0 never gives up: the request is under way when the program ends.
one, other = pair(dict(dest_qp_num=0x6666, timeout=0))
one.send(WRITE)
time.sleep(0.2)

print(json.dumps(found), flush=True)
