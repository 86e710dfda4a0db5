/**
 * Extended reliable connections: initiators at one host send to the shared receive queues of several owners at the other, each with a protection
 * domain, a CQ and memory of its own, through targets of one XRC domain, with late receives and lost packets. Each message arrives in the queue
 * that it names, in the order of its initiator; WRITEs and READs reach the memory of that queue's owner; and a request for the memory of one
 * owner by the queue of another is refused (IBTA vol 1, annex A14).
 */
import {
  announcedOf,
  connectInitiator,
  connectTarget,
  peerFrom,
  type RcAddress,
  type RcBuffer,
} from '../../experiments/workloads/index.ts';
import * as ibv from '../../userlib/index.ts';
import type { ArgsOf, Device, Draft, Draws, Stage, Taken } from './language/index.ts';
import { filled, isWell, scene, series, times, topic, usual } from './language/index.ts';

/** Bytes of a message, and of a receive. */
const slotBytes = 8192;
const blank = 0xee;
const opcodes = {
  send: ibv.IBV_WR_SEND_WITH_IMM,
  write: ibv.IBV_WR_RDMA_WRITE,
  writeImm: ibv.IBV_WR_RDMA_WRITE_WITH_IMM,
  read: ibv.IBV_WR_RDMA_READ,
} as const;
type Kind = keyof typeof opcodes;

function draw(random: Draws) {
  const initiators = 1 + random.below(3);
  const owners = 2 + random.below(3);
  const isLong = random.chance(0.4);
  const messages = times(6 + random.below(30), () => ({
    initiator: random.below(initiators),
    owner: random.below(owners),
    kind: random.oneOf<Kind>(['send', 'send', 'write', 'writeImm', 'read']),
    lengthBytes: random.below(isLong ? slotBytes + 1 : 300),
  }));
  // Receives of each queue.
  const receives = 1 + random.below(12);
  // Time for which the owners leave their queues empty.
  const lateUs = random.chance(0.5) ? random.below(300) : 0;
  const mtuCode = 1 + random.below(5);
  const isLossy = random.chance(0.4);
  const loss = () => ({ packet: 'lost' as const, nth: 1 + random.below(60), node: random.below(2) });
  const faults = isLossy ? times(1 + random.below(4), loss) : [];
  const hasDrawnHardware = !isLossy && random.chance(0.5);
  const args = { initiators, owners, receives, messages, lateUs, mtuCode, isLossy };
  return { args, hasDrawnHardware, faults, climate: isLossy ? 'lossy' : 'flawed' } satisfies Draft<unknown>;
}

type Args = ArgsOf<typeof draw>;
type Message = Args['messages'][number];

const takesReceive = ({ kind }: Message): boolean => kind === 'send' || kind === 'writeImm';
const attributesOf = ({ mtuCode }: Args) => ({
  ...usual,
  pathMtu: mtuCode as ibv.PortAttr['activeMtu'],
  ...{ readAtomicMax: 4, timeoutCode: 14, rnrTimerCode: 10 },
});

/** Returns the byte of which a message is made; no message uses 0. */
const byteOf = (message: number): number => 1 + ((53 * message) % 0xec);
/** The byte of an owner's memory that is read. */
const sourceByte = (owner: number): number => 0xf0 + owner;
/** Whether a slot begins with `count` copies of a byte, and is blank after them. */
const holds = (bytes: Uint8Array, byte: number, count: number): boolean =>
  bytes.every((one, at) => one === (at < count ? byte : blank));

/** An owner's published values: its queue, the target memory of messages, and the memory that is read. */
interface OwnerNote {
  readonly srqn: number;
  readonly written: number;
  readonly source: number;
  readonly rkey: number;
}

const initiatorsTopic = topic<readonly RcAddress[]>('initiators');
const targetsTopic = topic<{ readonly owners: readonly OwnerNote[]; readonly targets: readonly RcAddress[] }>(
  'targets',
);

async function asker(stage: Stage<Args>): Promise<void> {
  const { args, memory } = stage;
  const { messages, initiators, isLossy } = args;
  const device = await stage.open();
  const { context, pd, endpoint } = device;
  const cq = await device.cq(255);
  const init = () => ({
    pd,
    sendCq: cq,
    qpType: ibv.IBV_QPT_XRC_SEND,
    cap: { maxSendWr: 64, maxSendSge: 1 },
  });
  const qps = await series(initiators, async () => device.own(await ibv.createQpEx(context, init())));
  const { address, region } = await device.buffer((messages.length + 1) * slotBytes);
  const slotAt = (at: number): number => address + at * slotBytes;
  for (const [at, { kind }] of messages.entries())
    memory.write(slotAt(at), filled(slotBytes, kind === 'read' ? blank : byteOf(at)));
  const psn = stage.context.random.below(1 << 24);
  await stage.put(
    initiatorsTopic,
    qps.map(({ qpNum }) => ({ ...announcedOf(endpoint.own), qpNum, psn })),
  );
  const { owners, targets } = await stage.take(targetsTopic);
  for (const [at, qp] of qps.entries()) {
    const target = { ...targets[at]!, ...peerFrom(endpoint.own, targets[at]!) };
    await connectInitiator(qp, target, psn, attributesOf(args));
  }
  await stage.meet('connected');
  const post = (at: number, { initiator, kind, owner, lengthBytes }: Message, by = owner): void => {
    const { written, source, rkey } = owners[owner]!;
    ibv.postSend(qps[initiator]!, {
      wrId: at,
      sgList: [{ addr: slotAt(at), length: lengthBytes, lkey: region.lkey }],
      ...{ numSge: 1, opcode: opcodes[kind], sendFlags: ibv.IBV_SEND_SIGNALED, immData: at },
      qpType: { xrc: { remoteSrqn: owners[by]!.srqn } },
      wr: { rdma: { remoteAddr: kind === 'read' ? source : written + at * slotBytes, rkey } },
    });
  };
  for (const [at, message] of messages.entries()) post(at, message);
  await stage.expectWell(cq, messages.length);
  await stage.meet('sent');
  const isOrderly = stage.wrong.length === 0;
  for (const [at, { kind, owner, lengthBytes }] of isOrderly ? messages.entries() : [])
    if (kind === 'read' && !holds(memory.read(slotAt(at), slotBytes), sourceByte(owner), lengthBytes))
      stage.accuse(`READ ${at} has not brought ${lengthBytes} bytes of owner ${owner}`);
  // Memory of the first owner by the queue of the second.
  post(messages.length, { initiator: 0, owner: 0, kind: 'read', lengthBytes: 8 }, 1);
  const [refused] = await stage.completions(cq, 1);
  // A responder that has sent such a NAK is in error: when it is lost nothing answers the requests that follow.
  const refusals = ['REM_ACCESS_ERR', ...(isLossy ? ['RETRY_EXC_ERR'] : [])];
  if (isOrderly && !refusals.includes(refused?.status ?? ''))
    stage.accuse(`memory of another owner was read with ${refused?.status}`);
  await stage.meet('over');
}

/** One owner of a queue. */
interface Owner {
  readonly cq: ibv.IbvCq;
  readonly srq: ibv.IbvSrq;
  readonly receives: RcBuffer;
  readonly written: RcBuffer;
  readonly note: OwnerNote;
}

async function openOwner(
  stage: Stage<Args>,
  device: Device,
  xrcd: ibv.IbvXrcd,
  number: number,
): Promise<Owner> {
  const { receives: maxWr, messages } = stage.args;
  const pd = await device.domain();
  const cq = await device.cq(64);
  const srq = await device.xrcQueue({ pd, attr: { maxWr, maxSge: 1 }, srqType: ibv.IBV_SRQT_XRC, xrcd, cq });
  const receives = await device.buffer(maxWr * slotBytes, undefined, pd);
  // The source of READs follows the target of WRITEs.
  const writtenBytes = messages.length * slotBytes;
  const written = await device.buffer(writtenBytes + slotBytes, undefined, pd);
  stage.memory.write(written.address, filled(writtenBytes, blank));
  const source = written.address + writtenBytes;
  stage.memory.write(source, filled(slotBytes, sourceByte(number)));
  const note = { srqn: ibv.getSrqNum(srq), written: written.address, source, rkey: written.region.rkey };
  return { cq, srq, receives, written, note };
}

async function answerer(stage: Stage<Args>): Promise<void> {
  const { args } = stage;
  const device = await stage.open();
  const { context, endpoint } = device;
  const xrcd = await device.xrcDomain();
  const owners = await series(args.owners, (at) => openOwner(stage, device, xrcd, at));
  const target = { qpType: ibv.IBV_QPT_XRC_RECV, xrcd } as const;
  const targets = await series(args.initiators, async () =>
    device.own(await ibv.createQpEx(context, target)),
  );
  await stage.put(targetsTopic, {
    owners: owners.map(({ note }) => note),
    targets: targets.map(({ qpNum }) => ({ ...announcedOf(endpoint.own), qpNum, psn: 0 })),
  });
  const initiators = await stage.take(initiatorsTopic);
  for (const [at, target] of targets.entries()) {
    const initiator = { ...initiators[at]!, ...peerFrom(endpoint.own, initiators[at]!) };
    await connectTarget(target, initiator, attributesOf(args));
  }
  await stage.meet('connected');
  await stage.sleepUs(args.lateUs);
  await new NamedQueues(stage, owners, targets).takeAll();
  await stage.meet('sent');
  await stage.lastBytesIn();
  // WRITEs lie in the memory of the owner whose queue they named, and nothing else does.
  for (const [number, { written }] of owners.entries())
    for (const [at, { owner, kind, lengthBytes }] of args.messages.entries()) {
      const isWritten = owner === number && (kind === 'write' || kind === 'writeImm');
      const bytes = stage.memory.read(written.address + at * slotBytes, slotBytes);
      if (!holds(bytes, byteOf(at), isWritten ? lengthBytes : 0))
        stage.accuse(`owner ${number}: the place of message ${at} is not as it was written`);
    }
  await stage.meet('over');
}

/** The receives of all owners, and the messages that they must receive. */
class NamedQueues {
  readonly #stage: Stage<Args>;
  readonly #owners: readonly Owner[];
  readonly #targets: readonly ibv.IbvTargetQp[];
  /** The last message of each initiator to each owner. */
  readonly #last = new Map<string, number>();
  readonly #seen = new Set<number>();

  constructor(stage: Stage<Args>, owners: readonly Owner[], targets: readonly ibv.IbvTargetQp[]) {
    this.#stage = stage;
    this.#owners = owners;
    this.#targets = targets;
    for (const owner of owners)
      for (let slot = 0; slot < stage.args.receives; slot++) this.#post(owner, slot);
  }

  /** Polls receives, and posts them again, until all messages have arrived or no more arrive. */
  async takeAll(): Promise<void> {
    const due = this.#stage.args.messages.filter(takesReceive).length;
    for (let naps = 0; this.#seen.size < due && naps < 3000; ) {
      const before = this.#seen.size;
      for (const [at, { cq }] of this.#owners.entries())
        for (const one of await this.#stage.poll(cq, 16)) this.#take(at, one);
      naps = this.#seen.size > before ? 0 : naps + 1;
      if (naps > 0) await this.#stage.sleepMs(Math.min(naps, 10));
    }
    if (this.#seen.size < due) this.#stage.accuse(`${this.#seen.size} of ${due} receives have completed`);
  }

  #post({ srq, receives }: Owner, slot: number): void {
    const addr = receives.address + slot * slotBytes;
    this.#stage.memory.write(addr, filled(slotBytes, blank));
    const sgList = [{ addr, length: slotBytes, lkey: receives.region.lkey }];
    const error = ibv.postSrqRecv(srq, { wrId: slot, sgList, numSge: 1 });
    if (error !== 0) this.#stage.accuse(`a receive was refused with ${error}`);
  }

  #take(at: number, one: Taken): void {
    const { id, byteLen, immData, qpNum } = one;
    const message = this.#stage.args.messages[immData];
    if (!isWell(one) || message === undefined || this.#seen.has(immData))
      return this.#stage.accuse(`owner ${at}: receive ${id} in ${one.status} of message ${immData}`);
    this.#seen.add(immData);
    const { initiator, owner, kind, lengthBytes } = message;
    const way = `${initiator} ${owner}`;
    const isInOrder = immData > (this.#last.get(way) ?? -1);
    this.#last.set(way, immData);
    const bytes = this.#stage.memory.read(this.#owners[at]!.receives.address + id * slotBytes, slotBytes);
    const isRight = holds(bytes, byteOf(immData), kind === 'send' ? lengthBytes : 0);
    const isOfTarget = qpNum === this.#targets[initiator]!.qpNum;
    if (owner !== at || byteLen !== lengthBytes || !isInOrder || !isRight || !isOfTarget)
      this.#stage.accuse(
        `owner ${at}: message ${immData} of ${byteLen} bytes by QP ${qpNum}, due at owner ${owner}`,
      );
    this.#post(this.#owners[at]!, id);
  }
}

export const namedQueues = scene({
  about:
    'initiators of extended reliable connections send to the queues of several owners through shared targets',
  draw,
  programs: [asker, answerer],
});
