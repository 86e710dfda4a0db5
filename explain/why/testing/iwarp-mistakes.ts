/** Mistakes of the catalogue over iWARP: two programs with a connection by rdma_cm, in which a test changes one thing. */
import type { ProgramContext } from '../../../machine/index.ts';
import {
  allocPd,
  createCq,
  destroyQp,
  IBV_ACCESS_LOCAL_WRITE,
  IBV_ACCESS_REMOTE_READ,
  IBV_ACCESS_REMOTE_WRITE,
  IBV_QPT_RC,
  IBV_SEND_SIGNALED,
  IBV_WC_SUCCESS,
  IBV_WR_ATOMIC_FETCH_AND_ADD,
  IBV_WR_RDMA_READ,
  IBV_WR_RDMA_WRITE,
  IBV_WR_RDMA_WRITE_WITH_IMM,
  IBV_WR_SEND,
  IBV_WR_SEND_WITH_IMM,
  type IbvCq,
  type IbvMr,
  type IbvQp,
  IbvWc,
  postRecv,
  postSend,
  RDMA_CM_EVENT_CONNECT_REQUEST,
  RDMA_CM_EVENT_DISCONNECTED,
  RDMA_CM_EVENT_ESTABLISHED,
  RDMA_PS_TCP,
  type RdmaCmEvent,
  type RdmaCmId,
  type RdmaEventChannel,
  rdmaAccept,
  rdmaAckCmEvent,
  rdmaBindAddr,
  rdmaConnect,
  rdmaCreateEventChannel,
  rdmaCreateId,
  rdmaCreateQp,
  rdmaDisconnect,
  rdmaGetCmEvent,
  rdmaListen,
  rdmaReject,
  rdmaResolveAddr,
  rdmaResolveRoute,
  regMr,
  spinCq,
} from '../../../userlib/index.ts';
import type { Mistake } from './mistakes.ts';

const sinPort = 7471;
const serverAddress = { sinAddr: '10.0.0.2', sinPort };
const bufferBytes = 4096;
const allRights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;

/** READs and atomics that each side may have outstanding. */
const depths = { responderResources: 4, initiatorDepth: 4 };

interface Options {
  readonly access?: number;
  readonly regionBytes?: number;
  /** Whether the region is of another protection domain than the QP. */
  readonly hasOtherDomain?: boolean;
  readonly cqEntries?: number;
  readonly receives?: number;
  readonly receiveBytes?: number;
  readonly depths?: typeof depths;
  readonly sinPort?: number;
}

interface Remote {
  readonly address: number;
  readonly rkey: number;
}

interface Request {
  readonly opcode?: number;
  readonly bytes?: number;
  readonly flags?: number;
  readonly remoteAddr?: number;
  readonly rkey?: number;
  readonly numSge?: number;
}

/** One side of a connection. */
class Side {
  readonly program: ProgramContext;
  readonly id: RdmaCmId;
  readonly channel: RdmaEventChannel;
  readonly qp: IbvQp;
  readonly cq: IbvCq;
  readonly mr: IbvMr;
  readonly buffer: number;
  /** Memory of the peer, once both are connected. */
  peer: Remote = { address: 0, rkey: 0 };

  constructor(parts: Pick<Side, 'program' | 'id' | 'channel' | 'qp' | 'cq' | 'mr' | 'buffer'>) {
    this.program = parts.program;
    this.id = parts.id;
    this.channel = parts.channel;
    this.qp = parts.qp;
    this.cq = parts.cq;
    this.mr = parts.mr;
    this.buffer = parts.buffer;
  }

  /** Returns the result of ibv_post_send. */
  send({
    opcode = IBV_WR_SEND,
    bytes = 64,
    flags = IBV_SEND_SIGNALED,
    remoteAddr = this.peer.address,
    rkey = this.peer.rkey,
    numSge = 1,
  }: Request = {}): number {
    const sgList = Array.from({ length: numSge }, () => ({
      addr: this.buffer,
      length: bytes,
      lkey: this.mr.lkey,
    }));
    const wr = { rdma: { remoteAddr, rkey }, atomic: { remoteAddr, rkey, compareAdd: 1n, swap: 2n } };
    return postSend(this.qp, { wrId: 1, sgList, numSge, opcode, sendFlags: flags, immData: 7, wr });
  }

  /** Polls the next completion, whatever its status. */
  async take(): Promise<IbvWc> {
    const wc = [new IbvWc()];
    await spinCq(this.cq, 1, wc);
    return wc[0]!;
  }

  async mustTake(): Promise<void> {
    const { status } = await this.take();
    if (status !== IBV_WC_SUCCESS) throw new Error(`completion with status ${status}`);
  }

  event(): Promise<RdmaCmEvent> {
    return next(this.channel);
  }

  signal(name = 'done'): Promise<void> {
    return this.program.exchange.put(name, true);
  }

  async awaitSignal(name = 'done'): Promise<void> {
    await this.program.exchange.take(name);
  }
}

async function next(channel: RdmaEventChannel, wanted?: number): Promise<RdmaCmEvent> {
  const event = (await rdmaGetCmEvent(channel))!;
  rdmaAckCmEvent(event);
  if (wanted !== undefined && event.event !== wanted)
    throw new Error(`event ${event.event}, status ${event.status}`);
  return event;
}

async function listens({ verbs, exchange }: ProgramContext): Promise<RdmaEventChannel> {
  const channel = await rdmaCreateEventChannel(verbs);
  const listener = await rdmaCreateId(channel, null, RDMA_PS_TCP);
  await rdmaBindAddr(listener, { sinAddr: '0.0.0.0', sinPort });
  await rdmaListen(listener, 4);
  await exchange.put('listening', true);
  return channel;
}

async function resolves({ verbs, exchange }: ProgramContext, port = sinPort): Promise<RdmaCmId> {
  await exchange.take('listening');
  const channel = await rdmaCreateEventChannel(verbs);
  const id = await rdmaCreateId(channel, null, RDMA_PS_TCP);
  await rdmaResolveAddr(id, null, { ...serverAddress, sinPort: port }, 100);
  await next(channel);
  await rdmaResolveRoute(id, 100);
  await next(channel);
  return id;
}

/** Creates the objects of a side, and tells the peer address and key of its memory. */
async function equipped(program: ProgramContext, id: RdmaCmId, options: Options): Promise<Side> {
  const { access = allRights, regionBytes = bufferBytes, cqEntries = 64, receives = 4 } = options;
  const pd = await allocPd(id.verbs!);
  const cq = await createCq(id.verbs!, cqEntries);
  const cap = { maxSendWr: 16, maxRecvWr: 16, maxSendSge: 2, maxRecvSge: 1 };
  const qp = await rdmaCreateQp(id, pd, { sendCq: cq, recvCq: cq, qpType: IBV_QPT_RC, cap });
  const buffer = program.memory.map(bufferBytes);
  const domain = options.hasOtherDomain === true ? await allocPd(id.verbs!) : pd;
  const mr = await regMr(domain, buffer, regionBytes, access);
  const length = options.receiveBytes ?? 256;
  for (let posted = 0; posted < receives; posted++)
    postRecv(qp, { wrId: 2, sgList: [{ addr: buffer, length, lkey: mr.lkey }], numSge: 1 });
  await program.exchange.put('memory', { address: buffer, rkey: mr.rkey });
  return new Side({ program, id, channel: id.channel, qp, cq, mr, buffer });
}

type Act = (side: Side) => Promise<void> | void;

const asks =
  (act: Act, options: Options = {}) =>
  async (program: ProgramContext): Promise<void> => {
    const id = await resolves(program, options.sinPort);
    const side = await equipped(program, id, options);
    await rdmaConnect(id, options.depths ?? depths);
    await next(id.channel, RDMA_CM_EVENT_ESTABLISHED);
    side.peer = await program.exchange.take<Remote>('memory');
    await act(side);
  };

const answers =
  (act: Act, options: Options = {}) =>
  async (program: ProgramContext): Promise<void> => {
    const channel = await listens(program);
    const { id } = await next(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
    const side = await equipped(program, id, options);
    await rdmaAccept(id, depths);
    await next(channel, RDMA_CM_EVENT_ESTABLISHED);
    side.peer = await program.exchange.take<Remote>('memory');
    await act(side);
  };

/** A client that connects without an own exchange of memory, and must succeed. */
const connectsAlone =
  (port = sinPort) =>
  async (program: ProgramContext): Promise<void> => {
    const id = await resolves(program, port);
    const pd = await allocPd(id.verbs!);
    const cq = await createCq(id.verbs!, 16);
    const cap = { maxSendWr: 4, maxRecvWr: 4, maxSendSge: 1, maxRecvSge: 1 };
    await rdmaCreateQp(id, pd, { sendCq: cq, recvCq: cq, qpType: IBV_QPT_RC, cap });
    await rdmaConnect(id);
    await next(id.channel, RDMA_CM_EVENT_ESTABLISHED); // here
    await program.exchange.put('done', true);
  };

const waits: Act = (side) => side.awaitSignal();

/** Posts a request, takes its completion and the end of the connection, and signals the peer. */
const request =
  (wanted: Request): Act =>
  async (side) => {
    side.send(wanted); // here
    await side.take();
    await side.event();
    await side.signal();
  };

const write = (wanted: Request = {}): Act => request({ opcode: IBV_WR_RDMA_WRITE, ...wanted });
const read = (wanted: Request = {}): Act => request({ opcode: IBV_WR_RDMA_READ, ...wanted });

/** A request that the own card refuses. */
const refused =
  (wanted: Request): Act =>
  async (side) => {
    side.send(wanted); // here
    await side.take();
    await side.signal();
  };

type Row = Omit<Mistake, 'networks'>;

const rows: readonly Row[] = [
  {
    name: 'nothing listens on the port',
    cause: 'connection-rejected',
    says: /to 10\.0\.0\.2 port 7472 ended with RDMA_CM_EVENT_REJECTED \(status -111\) .*nothing listens on port 7472 there, and the peer answered the SYN by a RST/,
    evidence: { status: -111 },
    host0: connectsAlone(sinPort + 1),
    host1: async (program) => {
      await listens(program);
      await program.exchange.take('done');
    },
  },
  {
    name: 'the program of the peer rejects the connection',
    cause: 'connection-rejected',
    says: /status -111.*the program of the peer refused it \(rdma_reject\) by an MPA reply with the reject bit/,
    host0: connectsAlone(),
    host1: async (program) => {
      const { id } = await next(await listens(program));
      await rdmaReject(id);
    },
  },
  {
    name: 'the peer does not answer the MPA request in time',
    cause: 'connection-failed',
    says: /RDMA_CM_EVENT_UNREACHABLE .*TCP was connected at .*no MPA reply of the peer came within driver\.mpaLimitMs/,
    set: { 'driver.mpaLimitMs': 10 },
    host0: connectsAlone(),
    host1: async (program) => {
      await next(await listens(program));
      await program.exchange.take('done');
    },
  },
  {
    name: 'a WRITE beyond the region of the peer',
    cause: 'remote-too-short',
    says: /The WRITE of QP 0x\w+ of host 0, .*reaches 64 bytes beyond the region .*Terminate 0x1101: DDP, tagged buffer: base or bounds violation/,
    evidence: { terminate: 0x1101 },
    host0: asks((side) => write({ bytes: 128, remoteAddr: side.peer.address + 4032 })(side)),
    host1: answers(waits),
  },
  {
    name: 'a WRITE under an rkey of nobody',
    cause: 'remote-key-unknown',
    says: /The WRITE of QP .*uses rkey 0x9999900, which no region of host 1 ever had; .*Terminate 0x1100: DDP, tagged buffer: invalid STag/,
    evidence: { terminate: 0x1100 },
    host0: asks(write({ rkey: 0x9999900 })),
    host1: answers(waits),
  },
  {
    name: 'a WRITE to a region without remote write',
    cause: 'remote-right-missing',
    says: /The WRITE of QP .*needs remote write on key .*Terminate 0x0102: RDMAP, remote protection: access rights violation/,
    evidence: { terminate: 0x0102, missing: 'IBV_ACCESS_REMOTE_WRITE' },
    host0: asks(write()),
    host1: answers(waits, { access: IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ }),
  },
  {
    name: 'a WRITE to a region of another protection domain',
    cause: 'remote-wrong-pd',
    says: /The WRITE of QP .*of protection domain .*Terminate 0x1102: DDP, tagged buffer: STag not associated with the stream/,
    evidence: { terminate: 0x1102 },
    host0: asks(write()),
    host1: answers(waits, { hasOtherDomain: true, receives: 0 }),
  },
  {
    name: 'a READ of a region without remote read',
    cause: 'remote-right-missing',
    says: /The READ of QP .*needs remote read on key .*Terminate 0x0102: RDMAP, remote protection: access rights violation/,
    evidence: { terminate: 0x0102, missing: 'IBV_ACCESS_REMOTE_READ' },
    host0: asks(read()),
    host1: answers(waits, { access: IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE }),
  },
  {
    name: 'a READ into a region without remote write',
    cause: 'read-sink-right-missing',
    says: /The READ of QP .* of host 0 needs remote write on key .*over iWARP the sink of a READ needs remote write \(RFC 5040, 5\.4\), .*LOC_PROT_ERR/,
    evidence: { terminate: 0x0102, missing: 'IBV_ACCESS_REMOTE_WRITE' },
    host0: asks(read(), { access: IBV_ACCESS_LOCAL_WRITE }),
    host1: answers(waits),
  },
  {
    name: 'a SEND without a receive',
    cause: 'no-receive',
    says: /QP 0x\w+ of host 1 had no receive for a message of QP 0x\w+ of host 0, none was ever posted: iWARP has no RNR NAK .*Terminate 0x1202: DDP, untagged buffer: no buffer available/,
    evidence: { receivesPosted: 0, terminate: 0x1202 },
    host0: asks(request({})),
    host1: answers(waits, { receives: 0 }),
  },
  {
    name: 'a SEND that is longer than its receive',
    cause: 'receive-too-short',
    node: 1,
    says: /A message of 512 bytes to QP 0x\w+ of host 1 is longer than the receive .*Terminate 0x1205: DDP, untagged buffer: message too long for the buffer/,
    evidence: { bytes: 512, terminate: 0x1205 },
    host0: asks(request({ bytes: 512 })),
    host1: answers(waits),
  },
  {
    name: 'an atomic, which RFC 5040 lacks',
    cause: 'iwarp-lacks-operation',
    says: /refused FETCH_ADD on QP .*LOC_QP_OP_ERR.*iWARP of RFC 5040 has neither atomics nor immediate data/,
    evidence: { operation: 'FETCH_ADD', extensions: 0 },
    host0: asks(refused({ opcode: IBV_WR_ATOMIC_FETCH_AND_ADD, bytes: 8 })),
    host1: answers(waits),
  },
  {
    name: 'a WRITE with immediate, which RFC 5040 lacks',
    cause: 'iwarp-lacks-operation',
    says: /refused WRITE_IMM on QP .*LOC_QP_OP_ERR/,
    host0: asks(refused({ opcode: IBV_WR_RDMA_WRITE_WITH_IMM })),
    host1: answers(waits),
  },
  {
    name: 'a SEND with immediate, which RFC 7306 lacks, too',
    cause: 'iwarp-lacks-operation',
    says: /refused SEND_IMM on QP .*a SEND of iWARP has no immediate data, with RFC 7306 neither/,
    evidence: { extensions: 1 },
    set: { 'hca.capability.iwarpExtensions': true },
    host0: asks(refused({ opcode: IBV_WR_SEND_WITH_IMM })),
    host1: answers(waits),
  },
  {
    name: 'a READ into two buffers',
    cause: 'read-of-several-sinks',
    says: /refused a READ of 2 buffers on QP .*a READ of iWARP names its sink by one STag/,
    evidence: { buffers: 2 },
    host0: asks(refused({ opcode: IBV_WR_RDMA_READ, numSge: 2 })),
    host1: answers(waits),
  },
  {
    name: 'initiator_depth is 0, and a READ is posted',
    cause: 'no-outbound-reads',
    says: /polls CQ 0x\w+, but the connection of QP 0x\w+ of host 0 was agreed with an ORD of 0/,
    evidence: { outboundReads: 0, parkedFor: 'readLimit' },
    host0: asks(read(), { depths: { responderResources: 4, initiatorDepth: 0 } }),
    host1: answers(waits),
  },
  {
    name: 'the link goes down under a connection',
    cause: 'link-down',
    says: /The connection of QP 0x\w+ of host 0 gets no acknowledgement: TCP has sent its oldest segment again 3 times since the last one, and still tries; the port of host \d went down at 40 ms/,
    faults: [{ cable: 'pulled', at: '40ms' }],
    host0: asks(async (side) => {
      await side.program.cpu.sleep(50e9);
      side.send({ opcode: IBV_WR_RDMA_READ });
      await side.take(); // here
    }),
    host1: answers(waits),
  },
  {
    name: 'all frames are lost in the middle of a transfer',
    cause: 'tcp-lost',
    says: /The connection of QP 0x\w+ of host 0 ended with a time-out at \d+\.\d+ s: TCP sent its oldest segment again 15 times without an acknowledgement \(injected: packet=lost/,
    evidence: { timeouts: 15 },
    faults: [{ packet: 'lost', node: 0, nth: '20-99999' }],
    host0: asks(async (side) => {
      for (let posted = 0; posted < 15; posted++) side.send({ opcode: IBV_WR_RDMA_WRITE, bytes: 4096 });
      for (let taken = 0; taken < 15; taken++) await side.mustTake();
      // A receive, which is flushed.
      await side.take();
      await side.signal();
    }),
    host1: answers(waits),
  },
  {
    name: 'all frames of a host are lost',
    cause: 'tcp-no-answer',
    says: /A connection of host 0 gets no acknowledgement: TCP has sent its SYN again \d+ times? since the last one, and still tries \(injected: .*packet/,
    faults: [{ packet: 'lost', node: 0, nth: '2-9999' }],
    host0: connectsAlone(),
    host1: async (program) => {
      await next(await listens(program));
    },
  },
  {
    name: 'the send queue is full of unsignalled requests',
    cause: 'send-queue-unsignalled',
    says: /ibv_post_send returned ENOMEM .*all of them unsignalled/,
    host0: asks(async (side) => {
      while (side.send({ opcode: IBV_WR_RDMA_WRITE, flags: 0 }) === 0);
      await side.signal();
    }),
    host1: answers(waits),
  },
  {
    name: 'a CQ without room',
    cause: 'cq-overrun',
    says: /CQ 0x\w+ of host 0 overran at .*the completion after \d+ found no room/,
    host0: asks(
      async (side) => {
        for (let posted = 0; posted < 12; posted++) side.send({ opcode: IBV_WR_RDMA_WRITE });
        await side.program.cpu.sleep(1e9);
        await side.signal();
      },
      { cqEntries: 3, receives: 0 },
    ),
    host1: answers(waits, { receives: 0 }),
  },
  {
    name: 'the peer disconnects before a request',
    cause: 'peer-disconnected',
    says: /The program of host 1 ended the connection of QP 0x\w+ of host 0 by rdma_disconnect at .*requests that were under way or posted later complete as flushed/,
    host0: asks(async (side) => {
      await next(side.channel, RDMA_CM_EVENT_DISCONNECTED);
      await side.program.cpu.sleep(1e9);
      side.send(); // here
      for (;;) if ((await side.take()).wrId === 1) break;
      await side.signal();
    }),
    host1: answers(async (side) => {
      await rdmaDisconnect(side.id);
      await side.awaitSignal();
    }),
  },
  {
    name: 'the peer destroys its QP',
    cause: 'peer-qp-destroyed',
    says: /The connection of QP 0x\w+ of host 0 was reset \(RST\) at .*: its peer, QP 0x\w+ of host 1, was destroyed at /,
    host0: asks(async (side) => {
      await next(side.channel, RDMA_CM_EVENT_DISCONNECTED);
      await side.program.cpu.sleep(1e9);
      side.send(); // here
      for (;;) if ((await side.take()).wrId === 1) break;
      await side.signal();
    }),
    host1: answers(async (side) => {
      await destroyQp(side.qp);
      await side.awaitSignal();
    }),
  },
];

export const iwarpMistakes: readonly Mistake[] = rows.map((row) => ({ ...row, networks: ['iWARP'] }));

/** Programs without a mistake. */
export const rightIwarpPrograms: readonly Pick<Mistake, 'name' | 'host0' | 'host1'>[] = [
  {
    name: 'SEND, WRITE and READ over iWARP, and rdma_disconnect',
    host0: asks(async (side) => {
      for (const opcode of [IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ]) {
        side.send({ opcode });
        await side.mustTake();
      }
      await side.awaitSignal();
      await rdmaDisconnect(side.id);
      await next(side.channel, RDMA_CM_EVENT_DISCONNECTED);
    }),
    host1: answers(async (side) => {
      await side.mustTake();
      await side.signal();
      await next(side.channel, RDMA_CM_EVENT_DISCONNECTED);
    }),
  },
  {
    name: 'a bandwidth of WRITEs over iWARP',
    host0: asks(async (side) => {
      for (let round = 0; round < 50; round++) {
        for (let posted = 0; posted < 8; posted++)
          side.send({ opcode: IBV_WR_RDMA_WRITE, bytes: 4096, flags: posted === 7 ? IBV_SEND_SIGNALED : 0 });
        await side.mustTake();
      }
      await side.signal();
    }),
    host1: answers(waits),
  },
];
