/**
 * Extended reliable connections: initiators at one host send to the shared receive queues of several owners at the other, each with a
 * protection domain, a CQ and memory of its own, through targets of one XRC domain. Receives come late, and packets are lost. Each
 * message lies in a receive of the queue that it names, in the order of its initiator; WRITEs and READs reach the memory of that queue's
 * owner; and in the end a request for the memory of one by the queue of another is refused (IBTA vol 1, annex A14).
 */
import { psPerMs, psPerUs } from '../../base/index.ts';
import {
  announcedOf,
  barrier,
  connectInitiator,
  connectTarget,
  createBuffer,
  openEndpoint,
  peerFrom,
  type RcAddress,
  type RcAttributes,
  type RcBuffer,
  type RcEndpoint,
} from '../../experiments/workloads/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import {
  allocPd,
  closeDevice,
  closeXrcd,
  createCq,
  createQpEx,
  createSrqEx,
  deallocPd,
  deregMr,
  destroyCq,
  destroyQp,
  destroySrq,
  getSrqNum,
  IBV_QPT_XRC_RECV,
  IBV_QPT_XRC_SEND,
  IBV_SEND_SIGNALED,
  IBV_SRQT_XRC,
  IBV_WC_REM_ACCESS_ERR,
  IBV_WC_RETRY_EXC_ERR,
  IBV_WC_SUCCESS,
  IBV_WR_RDMA_READ,
  IBV_WR_RDMA_WRITE,
  IBV_WR_RDMA_WRITE_WITH_IMM,
  IBV_WR_SEND_WITH_IMM,
  type IbvCq,
  type IbvPd,
  type IbvQp,
  type IbvSrq,
  type IbvTargetQp,
  IbvWc,
  type IbvXrcd,
  openXrcd,
  type PortAttr,
  pollCq,
  postSrqRecv,
} from '../../userlib/index.ts';
import { askerAndAnswerer, completionsOf, post } from './pair.ts';
import type { Scene, SceneDraft } from './scene.ts';

type Kind = 'send' | 'write' | 'writeImm' | 'read';

interface Message {
  readonly initiator: number;
  readonly owner: number;
  readonly kind: Kind;
  readonly lengthBytes: number;
}

interface Args {
  readonly initiators: number;
  readonly owners: number;
  /** Of each queue. */
  readonly receives: number;
  readonly messages: readonly Message[];
  /** How long the owners leave their queues empty. */
  readonly lateUs: number;
  readonly mtuCode: number;
  readonly isLossy: boolean;
}

/** Of a message, and of a receive. */
const slotBytes = 8192;
const blank = 0xee;
const opcodes: Readonly<Record<Kind, number>> = {
  send: IBV_WR_SEND_WITH_IMM,
  write: IBV_WR_RDMA_WRITE,
  writeImm: IBV_WR_RDMA_WRITE_WITH_IMM,
  read: IBV_WR_RDMA_READ,
};
const takesReceive = ({ kind }: Message): boolean => kind === 'send' || kind === 'writeImm';

function draw(random: Random): SceneDraft {
  const initiators = 1 + random.below(3);
  const owners = 2 + random.below(3);
  const kinds: readonly Kind[] = ['send', 'send', 'write', 'writeImm', 'read'];
  const isLong = random.chance(0.4);
  const messages = Array.from(
    { length: 6 + random.below(30) },
    (): Message => ({
      initiator: random.below(initiators),
      owner: random.below(owners),
      kind: kinds[random.below(kinds.length)]!,
      lengthBytes: random.below(isLong ? slotBytes + 1 : 300),
    }),
  );
  const receives = 1 + random.below(12);
  const lateUs = random.chance(0.5) ? random.below(300) : 0;
  const mtuCode = 1 + random.below(5);
  const isLossy = random.chance(0.4);
  const args: Args = {
    initiators,
    owners,
    receives,
    messages,
    lateUs,
    mtuCode,
    isLossy,
  };
  const faults = Array.from({ length: isLossy ? 1 + random.below(4) : 0 }, () => ({
    packet: 'lost' as const,
    nth: 1 + random.below(60),
    node: random.below(2),
  }));
  return {
    args: args as unknown as JsonValue,
    hasDrawnHardware: !isLossy && random.chance(0.5),
    faults,
    climate: isLossy ? 'lossy' : 'flawed',
  };
}

const attributesOf = ({ mtuCode }: Args): RcAttributes => ({
  pathMtu: mtuCode as PortAttr['activeMtu'],
  readAtomicMax: 4,
  timeoutCode: 14,
  retryCount: 7,
  rnrRetryCount: 7,
  rnrTimerCode: 10,
});

/** The byte of which a message is made; 0 is none's. */
const byteOf = (message: number): number => 1 + ((53 * message) % 0xec);
/** The byte of an owner's memory that is read. */
const sourceByte = (owner: number): number => 0xf0 + owner;

/** What an owner tells of itself: its queue, where messages are written, and what is read. */
interface OwnerNote {
  readonly srqn: number;
  readonly written: number;
  readonly source: number;
  readonly rkey: number;
}

interface Notes {
  readonly owners: readonly OwnerNote[];
  readonly targets: readonly RcAddress[];
}

/** Sends. */
export async function asker(program: ProgramContext): Promise<JsonValue> {
  const args = program.args as unknown as Args;
  const { messages } = args;
  const endpoint = await openEndpoint(program);
  const { context, pd } = endpoint;
  const cq = await createCq(context, 255);
  const cap = { maxSendWr: 64, maxSendSge: 1 };
  const qps: IbvQp[] = [];
  for (let at = 0; at < args.initiators; at++)
    qps.push(await createQpEx(context, { pd, sendCq: cq, qpType: IBV_QPT_XRC_SEND, cap: { ...cap } }));
  const area = await createBuffer(endpoint, (messages.length + 1) * slotBytes);
  for (const [at, { kind }] of messages.entries())
    program.memory.write(
      area.address + at * slotBytes,
      new Uint8Array(slotBytes).fill(kind === 'read' ? blank : byteOf(at)),
    );
  const psn = program.random.below(1 << 24);
  const own = qps.map(({ qpNum }): RcAddress => ({ ...announcedOf(endpoint.own), qpNum, psn }));
  await program.exchange.put('initiators', own as unknown as JsonValue);
  const { owners, targets } = (await program.exchange.take('targets')) as unknown as Notes;
  for (const [at, qp] of qps.entries())
    await connectInitiator(
      qp,
      { ...targets[at]!, ...peerFrom(endpoint.own, targets[at]!) },
      psn,
      attributesOf(args),
    );
  await barrier(program, 'connected');
  const requestOf = (at: number, { kind, owner, lengthBytes }: Message, by = owner) => {
    const { written, source, rkey } = owners[owner]!;
    const remoteAddr = kind === 'read' ? source : written + at * slotBytes;
    return {
      wrId: at,
      sgList: [{ addr: area.address + at * slotBytes, length: lengthBytes, lkey: area.region.lkey }],
      numSge: 1,
      opcode: opcodes[kind],
      sendFlags: IBV_SEND_SIGNALED,
      immData: at,
      qpType: { xrc: { remoteSrqn: owners[by]!.srqn } },
      wr: { rdma: { remoteAddr, rkey } },
    };
  };
  for (const [at, message] of messages.entries()) post(qps[message.initiator]!, requestOf(at, message));
  const ended = await completionsOf({ endpoint, cq }, messages.length);
  const found = ended.flatMap(({ id, status }) =>
    status === IBV_WC_SUCCESS ? [] : [`message ${id} ended in status ${status}`],
  );
  if (ended.length !== messages.length)
    found.push(`${ended.length} of ${messages.length} messages have ended`);
  await barrier(program, 'sent');
  if (found.length === 0) found.push(...notRead(program, area, args));
  // Memory of the first owner by the queue of the second.
  const last = messages.length;
  post(qps[0]!, requestOf(last, { initiator: 0, owner: 0, kind: 'read', lengthBytes: 8 }, 1));
  const [refused] = await completionsOf({ endpoint, cq }, 1);
  // Who has sent such a NAK is in error: when it is lost nothing answers the requests that follow.
  const refusals: readonly number[] = args.isLossy
    ? [IBV_WC_REM_ACCESS_ERR, IBV_WC_RETRY_EXC_ERR]
    : [IBV_WC_REM_ACCESS_ERR];
  if (found.length === 0 && !refusals.includes(refused!.status))
    found.push(`memory of another owner was read with status ${refused!.status}`);
  await barrier(program, 'over');
  for (const qp of qps) await destroyQp(qp);
  await destroyCq(cq);
  await deregMr(area.region);
  await deallocPd(pd);
  await closeDevice(context);
  return found;
}

/** READs have brought the bytes of the owner whose queue they named. */
function notRead({ memory }: ProgramContext, { address }: RcBuffer, { messages }: Args): string[] {
  return messages.flatMap(({ kind, owner, lengthBytes }, at) => {
    if (kind !== 'read') return [];
    const bytes = memory.read(address + at * slotBytes, slotBytes);
    const isRight = bytes.every((byte, index) => byte === (index < lengthBytes ? sourceByte(owner) : blank));
    return isRight ? [] : [`READ ${at} has not brought ${lengthBytes} bytes of owner ${owner}`];
  });
}

/** One owner of a queue. */
interface Owner {
  readonly pd: IbvPd;
  readonly cq: IbvCq;
  readonly srq: IbvSrq;
  readonly receives: RcBuffer;
  readonly written: RcBuffer;
  readonly note: OwnerNote;
}

async function openOwner(endpoint: RcEndpoint, xrcd: IbvXrcd, args: Args, number: number): Promise<Owner> {
  const { context, program } = endpoint;
  const pd = await allocPd(context);
  const cq = await createCq(context, 64);
  const attr = { maxWr: args.receives, maxSge: 1 };
  const srq = await createSrqEx(context, { pd, attr, srqType: IBV_SRQT_XRC, xrcd, cq });
  const own = { ...endpoint, pd };
  const receives = await createBuffer(own, args.receives * slotBytes);
  // Behind what is written: what is read.
  const writtenBytes = args.messages.length * slotBytes;
  const written = await createBuffer(own, writtenBytes + slotBytes);
  program.memory.write(written.address, new Uint8Array(writtenBytes).fill(blank));
  const source = written.address + writtenBytes;
  program.memory.write(source, new Uint8Array(slotBytes).fill(sourceByte(number)));
  const { rkey } = written.region;
  return {
    pd,
    cq,
    srq,
    receives,
    written,
    note: { srqn: getSrqNum(srq), written: written.address, source, rkey },
  };
}

/** Receives. */
export async function answerer(program: ProgramContext): Promise<JsonValue> {
  const args = program.args as unknown as Args;
  const endpoint = await openEndpoint(program);
  const { context } = endpoint;
  const xrcd = await openXrcd(context, { fd: -1, oflags: 0 });
  const owners: Owner[] = [];
  for (let at = 0; at < args.owners; at++) owners.push(await openOwner(endpoint, xrcd, args, at));
  const targets: IbvTargetQp[] = [];
  for (let at = 0; at < args.initiators; at++)
    targets.push(await createQpEx(context, { qpType: IBV_QPT_XRC_RECV, xrcd }));
  const notes: Notes = {
    owners: owners.map(({ note }) => note),
    targets: targets.map(({ qpNum }) => ({ ...announcedOf(endpoint.own), qpNum, psn: 0 })),
  };
  await program.exchange.put('targets', notes as unknown as JsonValue);
  const initiators = (await program.exchange.take('initiators')) as unknown as RcAddress[];
  for (const [at, target] of targets.entries())
    await connectTarget(
      target,
      { ...initiators[at]!, ...peerFrom(endpoint.own, initiators[at]!) },
      attributesOf(args),
    );
  await barrier(program, 'connected');
  await program.cpu.sleep(args.lateUs * psPerUs);
  const queues = new NamedQueues(program, args, owners, targets);
  await queues.takeAll();
  await barrier(program, 'sent');
  // Their ACKs say that the device has them: the last bytes may be on their way.
  await program.cpu.sleep(2 * psPerMs);
  const found = [...queues.found, ...notWritten(program, args, owners)];
  await barrier(program, 'over');
  for (const target of targets) await destroyQp(target);
  for (const { pd, cq, srq, receives, written } of owners) {
    await destroySrq(srq);
    await destroyCq(cq);
    await deregMr(receives.region);
    await deregMr(written.region);
    await deallocPd(pd);
  }
  await closeXrcd(xrcd);
  await deallocPd(endpoint.pd);
  await closeDevice(context);
  return found;
}

/** The receives of all owners, and what has to come into them. */
class NamedQueues {
  readonly found: string[] = [];
  readonly #program: ProgramContext;
  readonly #args: Args;
  readonly #owners: readonly Owner[];
  readonly #targets: readonly IbvTargetQp[];
  /** The last message of each initiator to each owner. */
  readonly #last = new Map<string, number>();
  readonly #seen = new Set<number>();
  readonly #wcs = Array.from({ length: 16 }, () => new IbvWc());

  constructor(
    program: ProgramContext,
    args: Args,
    owners: readonly Owner[],
    targets: readonly IbvTargetQp[],
  ) {
    this.#program = program;
    this.#args = args;
    this.#owners = owners;
    this.#targets = targets;
    for (const owner of owners) for (let slot = 0; slot < args.receives; slot++) this.#post(owner, slot);
  }

  /** Takes receives, and posts them again, until all have come or none does any more. */
  async takeAll(): Promise<void> {
    const due = this.#args.messages.filter(takesReceive).length;
    for (let naps = 0; this.#seen.size < due && naps < 3000; ) {
      const before = this.#seen.size;
      for (const [at, owner] of this.#owners.entries()) {
        const taken = await pollCq(owner.cq, this.#wcs.length, this.#wcs);
        for (const wc of this.#wcs.slice(0, taken)) this.#take(at, wc);
      }
      if (this.#seen.size > before) naps = 0;
      else {
        naps++;
        await this.#program.cpu.sleep(Math.min(naps, 10) * psPerMs);
      }
    }
    if (this.#seen.size < due) this.found.push(`${this.#seen.size} of ${due} receives have completed`);
  }

  #post({ srq, receives }: Owner, slot: number): void {
    const addr = receives.address + slot * slotBytes;
    this.#program.memory.write(addr, new Uint8Array(slotBytes).fill(blank));
    const sgList = [{ addr, length: slotBytes, lkey: receives.region.lkey }];
    const error = postSrqRecv(srq, { wrId: slot, sgList, numSge: 1 }, { wr: null, index: 0 });
    if (error !== 0) this.found.push(`a receive was refused with ${error}`);
  }

  #take(at: number, { wrId, status, byteLen, immData, qpNum }: IbvWc): void {
    const message = this.#args.messages[immData];
    if (status !== IBV_WC_SUCCESS || message === undefined || this.#seen.has(immData))
      return void this.found.push(`owner ${at}: receive ${wrId} in status ${status} of message ${immData}`);
    this.#seen.add(immData);
    const { initiator, owner, kind, lengthBytes } = message;
    const way = `${initiator} ${owner}`;
    const isInOrder = immData > (this.#last.get(way) ?? -1);
    this.#last.set(way, immData);
    const { address } = this.#owners[at]!.receives;
    const bytes = this.#program.memory.read(address + wrId * slotBytes, slotBytes);
    const filled = kind === 'send' ? lengthBytes : 0;
    const isRight = bytes.every((byte, index) => byte === (index < filled ? byteOf(immData) : blank));
    const isOfTarget = qpNum === this.#targets[initiator]!.qpNum;
    if (owner !== at || byteLen !== lengthBytes || !isInOrder || !isRight || !isOfTarget)
      this.found.push(
        `owner ${at}: message ${immData} of ${byteLen} bytes by QP ${qpNum}, which is for owner ${owner}`,
      );
    this.#post(this.#owners[at]!, wrId);
  }
}

/** WRITEs lie in the memory of the owner whose queue they named, and nothing else does. */
function notWritten({ memory }: ProgramContext, { messages }: Args, owners: readonly Owner[]): string[] {
  return owners.flatMap(({ written }, number) =>
    messages.flatMap(({ owner, kind, lengthBytes }, at) => {
      const bytes = memory.read(written.address + at * slotBytes, slotBytes);
      const isWritten = owner === number && (kind === 'write' || kind === 'writeImm');
      const filled = isWritten ? lengthBytes : 0;
      const isRight = bytes.every((byte, index) => byte === (index < filled ? byteOf(at) : blank));
      return isRight ? [] : [`owner ${number}: the place of message ${at} is not as it was written`];
    }),
  );
}

export const namedQueues: Scene = {
  name: 'named-queues',
  about:
    'initiators of extended reliable connections send to the queues of several owners through shared targets',
  module: import.meta.url,
  programs: askerAndAnswerer,
  draw,
  judge: ({ results }) => (results as unknown as readonly string[][]).flat(),
};
