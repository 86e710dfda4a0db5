/**
 * A program for any topology: every host writes to the hosts at the other ends of its cables, through a QP for each cable.
 *
 *     node examples/every-cable.ts
 */

import type { MachineOptions, ProgramContext, Report, TopologyEntry } from '../index.ts';
import * as ibv from '../index.ts';
import { Machine } from '../index.ts';

interface Traffic {
  /** Ports that get a QP, in this order, and the ports through which hosts write; from 1. */
  readonly bound: readonly number[];
  readonly used: readonly number[];
  /** WRITEs by each of these ports, and their bytes. */
  readonly messages: number;
  readonly size: number;
}

interface Address {
  readonly lid: number;
  readonly qpn: number;
  readonly addr: number;
  readonly rkey: number;
}

/** Names a mailbox for data that arrive by a cable: by its port at the receiver. */
const mailboxOf = (what: string, portNum: number): string => `${what} at port ${portNum}`;

/** A QP in INIT at the port of a cable. */
async function boundQp(pd: ibv.IbvPd, cq: ibv.IbvCq, portNum: number): Promise<ibv.IbvQp> {
  const cap = { maxSendWr: 64, maxRecvWr: 1, maxSendSge: 1, maxRecvSge: 1 };
  const qp = await ibv.createQp(pd, { sendCq: cq, recvCq: cq, qpType: ibv.IBV_QPT_RC, cap });
  await ibv.modifyQp(
    qp,
    { qpState: ibv.IBV_QPS_INIT, pkeyIndex: 0, portNum, qpAccessFlags: ibv.IBV_ACCESS_REMOTE_WRITE },
    ibv.IBV_QP_STATE | ibv.IBV_QP_PKEY_INDEX | ibv.IBV_QP_PORT | ibv.IBV_QP_ACCESS_FLAGS,
  );
  return qp;
}

/** Brings it to RTS. */
async function connect(qp: ibv.IbvQp, portNum: number, far: Address): Promise<void> {
  await ibv.modifyQp(
    qp,
    {
      qpState: ibv.IBV_QPS_RTR,
      pathMtu: ibv.IBV_MTU_1024,
      destQpNum: far.qpn,
      rqPsn: 0,
      maxDestRdAtomic: 1,
      minRnrTimer: 12,
      ahAttr: { dlid: far.lid, sl: 0, srcPathBits: 0, isGlobal: 0, portNum },
    },
    ibv.IBV_QP_STATE |
      ibv.IBV_QP_AV |
      ibv.IBV_QP_PATH_MTU |
      ibv.IBV_QP_DEST_QPN |
      ibv.IBV_QP_RQ_PSN |
      ibv.IBV_QP_MAX_DEST_RD_ATOMIC |
      ibv.IBV_QP_MIN_RNR_TIMER,
  );
  await ibv.modifyQp(
    qp,
    { qpState: ibv.IBV_QPS_RTS, timeout: 14, retryCnt: 7, rnrRetry: 7, sqPsn: 0, maxRdAtomic: 1 },
    ibv.IBV_QP_STATE |
      ibv.IBV_QP_TIMEOUT |
      ibv.IBV_QP_RETRY_CNT |
      ibv.IBV_QP_RNR_RETRY |
      ibv.IBV_QP_SQ_PSN |
      ibv.IBV_QP_MAX_QP_RD_ATOMIC,
  );
}

/** @returns LIDs of the own ports by cable, picoseconds from the first post to the last completion, statuses, and the bytes received */
export async function writeByAllCables(context: ProgramContext<Traffic>) {
  const { links, node, cpu, memory, verbs, exchange } = context;
  const { bound, used, messages, size } = context.args;
  const device = await ibv.openDevice(ibv.getDeviceList(verbs)[0]!);
  const pd = await ibv.allocPd(device);
  const cq = await ibv.createCq(device, 128);
  const access = ibv.IBV_ACCESS_LOCAL_WRITE | ibv.IBV_ACCESS_REMOTE_WRITE;
  const ends = [];
  for (const link of bound.flatMap((port) => links.filter(({ portNum }) => portNum === port))) {
    const { portNum, peer, peerPortNum } = link;
    const [source, target] = [memory.map(size), memory.map(size)];
    memory.write(source, new Uint8Array(size).fill(16 * node + portNum));
    const { lkey } = await ibv.regMr(pd, source, size, access);
    const { rkey } = await ibv.regMr(pd, target, size, access);
    const qp = await boundQp(pd, cq, portNum);
    const { lid } = await ibv.queryPort(device, portNum);
    const address: Address = { lid, qpn: qp.qpNum, addr: target, rkey };
    await exchange.put(mailboxOf('address', peerPortNum), { ...address }, [peer]);
    ends.push({ link, lid, qp, source, target, lkey });
  }
  const connected = [];
  for (const end of ends) {
    const far = await exchange.take<Address>(mailboxOf('address', end.link.portNum));
    await connect(end.qp, end.link.portNum, far);
    connected.push({ ...end, far });
  }
  for (const { link } of ends) await exchange.put(mailboxOf('ready', link.peerPortNum), true, [link.peer]);
  for (const { link } of ends) await exchange.take(mailboxOf('ready', link.portNum));
  await cpu.settle();
  const startPs = cpu.localPs;
  const writers = connected.filter(({ link }) => used.includes(link.portNum));
  for (let message = 0; message < messages; message++)
    for (const { qp, far, source, lkey } of writers)
      ibv.postSend(qp, {
        wrId: message,
        sgList: [{ addr: source, length: size, lkey }],
        numSge: 1,
        opcode: ibv.IBV_WR_RDMA_WRITE,
        sendFlags: ibv.IBV_SEND_SIGNALED,
        wr: { rdma: { remoteAddr: far.addr, rkey: far.rkey } },
      });
  const statuses: number[] = [];
  const wc = [new ibv.IbvWc()];
  while (statuses.length < messages * writers.length)
    for (const { status } of wc.slice(0, await ibv.spinCq(cq, 1, wc))) statuses.push(status);
  const tookPs = cpu.localPs - startPs;
  for (const { link } of ends) await exchange.put(mailboxOf('done', link.peerPortNum), true, [link.peer]);
  for (const { link } of ends) await exchange.take(mailboxOf('done', link.portNum));
  const lids = ends.map(({ lid }) => lid);
  const received = ends.map(({ target }) => [...new Set(memory.read(target, size))]);
  return { lids, tookPs, statuses: [...new Set(statuses)], received };
}

/** Four hosts in a ring: port 1 of each is cabled to one neighbour, port 2 to the other. */
const ring: TopologyEntry = {
  nodes: [0, 1, 2, 3].map(() => ({ kind: 'host' })),
  links: [0, 1, 2, 3].map((node) => ({ ends: [{ node }, { node: (node + 1) % 4, port: 2 }] })),
};

export async function main(options: MachineOptions = { topology: ring }): Promise<Report> {
  await using machine = await Machine.create(options);
  const args: Traffic = { bound: [1, 2], used: [1, 2], messages: 3, size: 4096 };
  for (let node = 0; node < machine.nodeCount; node++)
    await machine.load({ node, name: `host${node}`, run: writeByAllCables, args });
  await machine.run();
  return machine.report();
}

if (import.meta.main) {
  for (const { from, fromPort = 1, to, toPort = 1, bytes } of (await main()).wire)
    console.log(`host ${from}, port ${fromPort} → host ${to}, port ${toPort}: ${bytes} bytes`);
}
