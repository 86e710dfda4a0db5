/** Programs of any number of hosts: flows of RDMA WRITEs from host to host, each by QPs of its own, begun together. */
import {
  announcedOf,
  ownAddressOf,
  type PortAddress,
  peerFrom,
} from '../../experiments/workloads/port-address.ts';
import { allAccess, type RcAttributes, toInit, toRtr, toRts } from '../../experiments/workloads/rc-states.ts';
import type { ProgramContext } from '../../machine/program.ts';
import {
  allocPd,
  createCq,
  createQp,
  getDeviceList,
  IBV_MTU_1024,
  IBV_QPT_RC,
  IBV_SEND_SIGNALED,
  IBV_WR_RDMA_WRITE,
  type IbvQp,
  openDevice,
  postSend,
  queryPort,
  regMr,
} from '../../userlib/index.ts';
import { take } from './outcomes.ts';
import { areEqual, patternOf } from './requests.ts';

/** WRITEs of messages that are all posted at once. */
export interface Flow {
  readonly from: number;
  readonly to: number;
  readonly bytes: number;
  readonly messages: number;
  readonly trafficClass?: number;
}

export interface FlowOutcome {
  readonly flow: number;
  readonly tookPs: number;
  readonly isRight: boolean;
}

const attributes: RcAttributes = {
  pathMtu: IBV_MTU_1024,
  readAtomicMax: 1,
  timeoutCode: 10,
  retryCount: 7,
  rnrRetryCount: 7,
  rnrTimerCode: 1,
};

type Told = PortAddress & { readonly qpNum: number; readonly address: number; readonly rkey: number };

/** One flow at one of its ends. */
interface End {
  readonly flow: number;
  readonly isSender: boolean;
  readonly qp: IbvQp;
  readonly address: number;
  readonly lkey: number;
  readonly far: Told;
}

const nameOf = (what: string, flow: number): string => `${what} ${flow}`;

/** @returns for each flow from this host its duration; for each flow to it whether its bytes are right */
export async function flows(program: ProgramContext<readonly Flow[]>): Promise<FlowOutcome[]> {
  const { args, node, exchange, memory, cpu } = program;
  const hosts = [...new Set(args.flatMap(({ from, to }) => [from, to]))];
  if (!hosts.includes(node)) return [];
  const ends = await connectedEnds(program);
  const others = hosts.filter((other) => other !== node);
  for (const other of others) await exchange.put(`ready of ${node}`, true, [other]);
  for (const other of others) await exchange.take(`ready of ${other}`);
  await cpu.settle();
  const startPs = cpu.localPs;
  const outcomes: FlowOutcome[] = [];
  const senders = ends.filter(({ isSender }) => isSender);
  for (const { flow, qp, address, lkey, far } of senders)
    for (let message = 0; message < args[flow]!.messages; message++) {
      const { bytes } = args[flow]!;
      postSend(qp, {
        wrId: message,
        sgList: [{ addr: address + message * bytes, length: bytes, lkey }],
        numSge: 1,
        opcode: IBV_WR_RDMA_WRITE,
        sendFlags: IBV_SEND_SIGNALED,
        wr: { rdma: { remoteAddr: far.address + message * bytes, rkey: far.rkey } },
      });
    }
  for (const { flow, qp } of senders) {
    const taken = await take(qp.sendCq, args[flow]!.messages);
    const isRight = taken.every(({ status }) => status === 'SUCCESS');
    outcomes.push({ flow, tookPs: cpu.localPs - startPs, isRight });
    await exchange.put(nameOf('done', flow), true, [args[flow]!.to]);
  }
  for (const { flow, address } of ends.filter(({ isSender }) => !isSender)) {
    await exchange.take(nameOf('done', flow));
    const lengthBytes = args[flow]!.bytes * args[flow]!.messages;
    const isRight = areEqual(memory.read(address, lengthBytes), patternOf(flow, lengthBytes));
    outcomes.push({ flow, tookPs: 0, isRight });
  }
  return outcomes;
}

async function connectedEnds({ args, node, exchange, memory, verbs }: ProgramContext<readonly Flow[]>) {
  const context = await openDevice(getDeviceList(verbs)[0]!);
  const pd = await allocPd(context);
  const port = await queryPort(context, 1);
  const opened: Omit<End, 'far'>[] = [];
  for (const [flow, { from, to, bytes, messages }] of args.entries()) {
    if (from !== node && to !== node) continue;
    const isSender = from === node;
    const lengthBytes = bytes * messages;
    const address = memory.map(lengthBytes);
    if (isSender) memory.write(address, patternOf(flow, lengthBytes));
    const { lkey, rkey } = await regMr(pd, address, lengthBytes, allAccess);
    const cq = await createCq(context, messages);
    const cap = { maxSendWr: messages, maxRecvWr: 1, maxSendSge: 1, maxRecvSge: 1 };
    const qp = await createQp(pd, { sendCq: cq, recvCq: cq, qpType: IBV_QPT_RC, cap });
    await toInit(qp);
    const own = await ownAddressOf(context, port);
    const told: Told = { ...announcedOf(own), qpNum: qp.qpNum, address, rkey };
    await exchange.put(nameOf(isSender ? 'sender' : 'receiver', flow), { ...told }, [isSender ? to : from]);
    opened.push({ flow, isSender, qp, address, lkey });
  }
  const ends: End[] = [];
  for (const end of opened) {
    const { trafficClass } = args[end.flow]!;
    const far = await exchange.take<Told>(nameOf(end.isSender ? 'receiver' : 'sender', end.flow));
    const route = trafficClass === undefined ? {} : { trafficClass };
    const own = await ownAddressOf(context, port, route);
    await toRtr(end.qp, { ...peerFrom(own, far), qpNum: far.qpNum, psn: 0 }, attributes);
    await toRts(end.qp, 0, attributes);
    ends.push({ ...end, far });
  }
  return ends;
}
