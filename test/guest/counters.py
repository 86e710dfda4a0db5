"""
Moves data from one device to the other over their cable, and makes each kind of error that an adapter counts; both queue pairs of a connection
are this program's.

    counters.py REQUESTER RESPONDER

It prints what each device has to count of it, by the names of Linux' hw_counters, as it follows from the completions and from what was done: a line of JSON.
"""
import collections
import json
import sys
import time

import pyverbs.enums as e
from pyverbs.addr import AH, AHAttr
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR, MW, MWBindInfo
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import RecvWR, SendWR, SGE

PATIENCE_SECONDS = 60
QKEY = 0x11111111
RIGHTS = (
    e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ | e.IBV_ACCESS_REMOTE_ATOMIC
)
NO_KEY = 0xFFFF00FF
BYTES = 65536

# What a completion with an error is counted as, at the send queue and at the receive queue.
ERRORS = {
    e.IBV_WC_LOC_LEN_ERR: ("sq_num_lle", "rq_num_lle"),
    e.IBV_WC_LOC_QP_OP_ERR: ("sq_num_lqpoe", "rq_num_lqpoe"),
    e.IBV_WC_LOC_PROT_ERR: ("sq_num_lpe", "rq_num_lpe"),
    e.IBV_WC_WR_FLUSH_ERR: ("sq_num_wrfe", "rq_num_wrfe"),
    e.IBV_WC_MW_BIND_ERR: ("sq_num_mwbe", None),
    e.IBV_WC_REM_INV_REQ_ERR: ("sq_num_rire", None),
    e.IBV_WC_REM_ACCESS_ERR: ("sq_num_rae", None),
    e.IBV_WC_REM_OP_ERR: ("sq_num_roe", None),
    e.IBV_WC_RETRY_EXC_ERR: ("sq_num_tree", None),
    e.IBV_WC_RNR_RETRY_EXC_ERR: ("sq_num_rree", None),
}


class End:
    """A device, and what it has to count."""

    def __init__(self, name):
        self.counts = collections.Counter()
        self.context = Context(name=name)
        self.lid = self.context.query_port(1).lid
        self.pd = PD(self.context)
        self.region = MR(self.pd, BYTES, RIGHTS | e.IBV_ACCESS_MW_BIND)

    def entry(self, length, key=None):
        return [SGE(self.region.buf, length, self.region.lkey if key is None else key)]


near, far = End(sys.argv[1]), End(sys.argv[2])


class Side:
    """A queue pair with a completion queue of its own."""

    def __init__(self, end, kind, entries=64):
        self.end = end
        self.cq = CQ(end.context, entries)
        cap = QPCap(max_send_wr=16, max_recv_wr=16, max_send_sge=1, max_recv_sge=1)
        self.attributes = QPAttr(port_num=1)
        if kind == e.IBV_QPT_UD:
            self.attributes.qkey = QKEY
            self.attributes.pkey_index = 0
        else:
            self.attributes.qp_access_flags = RIGHTS
        init = QPInitAttr(qp_type=kind, scq=self.cq, rcq=self.cq, cap=cap)
        self.qp = QP(end.pd, init, self.attributes)

    def connect(self, other_end, other_qpn, retries, rnr_retries):
        self.retries = retries
        attributes = self.attributes
        attributes.path_mtu = e.IBV_MTU_2048
        attributes.dest_qp_num = other_qpn
        attributes.rq_psn = attributes.sq_psn = 0
        attributes.ah_attr = AHAttr(port_num=1, is_global=0, dlid=other_end.lid)
        attributes.max_rd_atomic = attributes.max_dest_rd_atomic = 4
        attributes.min_rnr_timer = 14  # 1 ms
        attributes.timeout = 12  # 17 ms
        attributes.retry_cnt = retries
        attributes.rnr_retry = rnr_retries
        self.qp.to_rts(attributes)

    def receive(self, length, key=None):
        self.qp.post_recv(RecvWR(sg=self.end.entry(length, key), num_sge=1))

    def send(self, opcode, length, key=None, remote_key=None, bind=None):
        request = SendWR(opcode=opcode, num_sge=0 if bind else 1, sg=None if bind else self.end.entry(length, key))
        if opcode in (e.IBV_WR_RDMA_WRITE, e.IBV_WR_RDMA_WRITE_WITH_IMM, e.IBV_WR_RDMA_READ):
            request.set_wr_rdma(far.region.rkey if remote_key is None else remote_key, far.region.buf)
        if bind:
            request.set_bind_wr(*bind)
        self.qp.post_send(request)

    def completion(self, is_send):
        """The next completion, counted if it is an error."""
        until = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < until:
            count, found = self.cq.poll()
            if count == 0:
                continue
            if found[0].status != e.IBV_WC_SUCCESS:
                name = ERRORS[found[0].status][0 if is_send else 1]
                self.end.counts[name] += 1
                if found[0].status == e.IBV_WC_RETRY_EXC_ERR:
                    self.end.counts["sq_num_to"] += self.retries + 1
            return found[0].status
        raise SystemExit("no completion")

    def expect(self, is_send, *statuses):
        for status in statuses:
            seen = self.completion(is_send)
            if seen != status:
                raise SystemExit(f"status {seen}, expected {status}, behind {dict(near.counts)} {dict(far.counts)}")


OK, FLUSHED = e.IBV_WC_SUCCESS, e.IBV_WC_WR_FLUSH_ERR


def pair(retries=7, rnr_retries=7, entries=64):
    one, other = Side(near, e.IBV_QPT_RC), Side(far, e.IBV_QPT_RC, entries)
    one.connect(far, other.qp.qp_num, retries, rnr_retries)
    other.connect(near, one.qp.qp_num, retries, rnr_retries)
    return one, other


# Data, with what the plan of faults does to packets of it: one is lost and two are damaged on their way, and each is found missing by the next.
one, other = pair()
for _ in range(10):
    one.send(e.IBV_WR_RDMA_WRITE, 10_000)
    one.expect(True, OK)
near.counts["sq_num_oos"] += 3
far.counts["rq_num_oos"] += 3
for _ in range(5):
    one.send(e.IBV_WR_RDMA_READ, 10_000)
    one.expect(True, OK)
# Lost, with nothing behind it.
other.receive(100)
one.send(e.IBV_WR_SEND_WITH_IMM, 100)
one.expect(True, OK)
other.expect(False, OK)
near.counts["sq_num_to"] += 1
# Comes twice.
other.receive(100)
one.send(e.IBV_WR_RDMA_WRITE_WITH_IMM, 100)
one.expect(True, OK)
other.expect(False, OK)
far.counts["rq_num_dup"] += 1

# A receive that comes late: how many RNR NAKs that makes hangs on the guest's pace.
one.send(e.IBV_WR_SEND, 100)
time.sleep(0.05)
other.receive(100)
one.expect(True, OK)
other.expect(False, OK)

# Too long for its receive.
one, other = pair()
other.receive(100)
other.receive(100)
one.send(e.IBV_WR_SEND, 200)
one.send(e.IBV_WR_SEND, 10)
one.expect(True, e.IBV_WC_REM_INV_REQ_ERR, FLUSHED)
other.expect(False, e.IBV_WC_LOC_LEN_ERR, FLUSHED)
far.counts["rq_num_rire"] += 1

# A key that there is not.
one, other = pair()
one.send(e.IBV_WR_RDMA_WRITE, 100, remote_key=NO_KEY)
one.expect(True, e.IBV_WC_REM_ACCESS_ERR)
far.counts["rq_num_rae"] += 1

# The same of the requester's own, and of the receiver's.
one, other = pair()
one.send(e.IBV_WR_RDMA_WRITE, 100, key=NO_KEY)
one.expect(True, e.IBV_WC_LOC_PROT_ERR)
one, other = pair()
other.receive(100, key=NO_KEY)
one.send(e.IBV_WR_SEND, 100)
one.expect(True, e.IBV_WC_REM_OP_ERR)
other.expect(False, e.IBV_WC_LOC_PROT_ERR)

# A window on memory that allows none.
one, other = pair()
region = MR(near.pd, 4096, e.IBV_ACCESS_LOCAL_WRITE)
window = MW(near.pd, e.IBV_MW_TYPE_2)
one.send(e.IBV_WR_BIND_MW, 0, bind=(window, MWBindInfo(region, region.buf, 100, e.IBV_ACCESS_REMOTE_READ)))
one.expect(True, e.IBV_WC_MW_BIND_ERR)

# Nobody answers; nobody ever receives.
one, other = pair(retries=2)
other.qp.modify(QPAttr(qp_state=e.IBV_QPS_RESET), e.IBV_QP_STATE)
one.send(e.IBV_WR_RDMA_WRITE, 100)
one.expect(True, e.IBV_WC_RETRY_EXC_ERR)
one, other = pair(rnr_retries=1)
one.send(e.IBV_WR_SEND, 100)
one.expect(True, e.IBV_WC_RNR_RETRY_EXC_ERR)

# A datagram without a receive, and one longer than a packet.
one, other = Side(near, e.IBV_QPT_UD), Side(far, e.IBV_QPT_UD)
ah = AH(near.pd, attr=AHAttr(port_num=1, is_global=0, dlid=far.lid))
for length, status in ((100, OK), (8192, e.IBV_WC_LOC_LEN_ERR)):
    request = SendWR(opcode=e.IBV_WR_SEND, num_sge=1, sg=near.entry(length))
    request.set_wr_ud(ah, other.qp.qp_num, QKEY)
    one.qp.post_send(request)
    one.expect(True, status)
far.counts["rq_num_udsdprd"] += 1

# An operation that the service has not.
one, other = Side(near, e.IBV_QPT_UC), Side(far, e.IBV_QPT_UC)
one.connect(far, other.qp.qp_num, 0, 0)
one.send(e.IBV_WR_RDMA_READ, 100)
one.expect(True, e.IBV_WC_LOC_QP_OP_ERR)

# A completion queue that nobody empties: its queue pair ends, and what comes for it then has no answer.
one, other = pair(retries=0, entries=1)
for _ in range(8):
    other.receive(100)
for _ in range(8):
    one.send(e.IBV_WR_SEND, 100)
    if one.completion(True) != OK:
        break
    time.sleep(0.1)
far.counts["num_cqovf"] += 1
print(json.dumps([near.counts, far.counts]))
