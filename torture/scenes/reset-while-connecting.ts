/**
 * A device is reset while a REQ of rdma_cm is under way: the client's, before the answer comes, or the server's, before it answers. The
 * client's ID then ends once, in DEVICE_REMOVAL if its own device was reset, established or refused if the server's was (the REQ is sent again
 * after a CM time-out; IBTA volume 1, 12.9.8). Whatever became of it, the next connection is established and carries its message.
 *
 *     client: REQ ──── rest ──── reset? ── one end of the ID ──► barrier ──► connect again ──► message
 *     server: the same listener accepts ── reset? ───────────────► barrier ──► accept, receive
 */
import { psPerMs, psPerNs, psPerUs } from '../../base/index.ts';
import type { Driver } from '../../driver/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import * as ibv from '../../userlib/index.ts';
import { nowPs } from './pair.ts';
import { differencesOf, patternOf, type Wrong, wrongOf } from './patterns.ts';
import type { Scene, SceneDraft } from './scene.ts';

interface Round {
  /** Node whose device is reset … */
  readonly victim: number;
  /** … that long after the REQ was posted. */
  readonly restNs: number;
}

interface Args {
  readonly rounds: readonly Round[];
  readonly lengthBytes: number;
}

const sinPort = 7471;
const resolveMs = 2000;
const reasonStale = 10;
const maxBytes = 4096;
const napPs = 20 * psPerUs;
/** All repetitions of a REQ: 16 time-outs of some eight seconds. */
const endPatiencePs = 200_000 * psPerMs;
const messagePatiencePs = 2000 * psPerMs;
const attemptsMax = 4;
const restartPs = 200 * psPerMs;

function draw(random: Random): SceneDraft {
  const args: Args = {
    rounds: Array.from({ length: 1 + random.below(3) }, () => ({
      victim: random.below(2),
      // A REQ and its REP take some tens of microseconds.
      restNs: random.below([100, 5000, 60_000, 400_000][random.below(4)]!),
    })),
    lengthBytes: 1 + random.below(maxBytes),
  };
  return { args: args as unknown as JsonValue, hasDrawnHardware: random.chance(0.2), sleepsSeconds: 1200 };
}

interface Talk {
  readonly id: ibv.RdmaCmId;
  readonly pd: ibv.IbvPd;
  readonly mr: ibv.IbvMr;
  readonly cq: ibv.IbvCq;
  readonly qp: ibv.IbvQp;
  readonly addr: number;
}

/** One side: its channel, its open IDs, and what it finds wrong. */
class Party {
  readonly wrong: string[] = [];
  readonly talks = new Map<ibv.RdmaCmId, Talk>();
  readonly program: ProgramContext;
  readonly channel: ibv.RdmaEventChannel;
  readonly args: Args;

  constructor(program: ProgramContext, channel: ibv.RdmaEventChannel) {
    this.program = program;
    this.channel = channel;
    this.args = program.args as unknown as Args;
  }

  async build(id: ibv.RdmaCmId): Promise<Talk> {
    const pd = await ibv.allocPd(id.verbs!);
    const addr = this.program.memory.map(maxBytes);
    const mr = await ibv.regMr(pd, addr, maxBytes, ibv.IBV_ACCESS_LOCAL_WRITE);
    const cq = await ibv.createCq(id.verbs!, 4);
    const cap = { maxSendWr: 1, maxRecvWr: 1, maxSendSge: 1, maxRecvSge: 1 };
    const qp = await ibv.rdmaCreateQp(id, pd, { sendCq: cq, recvCq: cq, qpType: ibv.IBV_QPT_RC, cap });
    const talk: Talk = { id, pd, mr, cq, qp, addr };
    this.talks.set(id, talk);
    return talk;
  }

  /** Destroys an ID and what belongs to it. */
  async end(id: ibv.RdmaCmId): Promise<void> {
    const talk = this.talks.get(id);
    this.talks.delete(id);
    if (talk !== undefined) {
      await ibv.rdmaDestroyQp(id);
      await ibv.destroyCq(talk.cq);
      await ibv.deregMr(talk.mr);
      await ibv.deallocPd(talk.pd);
    }
    await ibv.rdmaDestroyId(id);
  }

  /** The next event, acknowledged. An event of an ID whose device has died may be answered EIO: then the one after it. */
  async next(patiencePs: number): Promise<ibv.RdmaCmEvent | undefined> {
    for (;;) {
      const event = await unlessDead(ibv.rdmaGetCmEvent(this.channel, patiencePs));
      if (event === 'dead') continue;
      if (event !== undefined) ibv.rdmaAckCmEvent(event);
      return event;
    }
  }

  /** Ends the ID of an event that is none of the connection being made. */
  async settle({ id, event }: ibv.RdmaCmEvent): Promise<void> {
    if (event !== ibv.RDMA_CM_EVENT_TIMEWAIT_EXIT && this.talks.has(id)) await this.end(id);
  }

  /** Resets the own device as Linux does after an internal error, and waits until its driver is back. */
  async reset(): Promise<void> {
    const { cpu, verbs } = this.program;
    const [driver] = verbs.devices as Driver[];
    driver!.device.lifecycle.die('the scene wants it');
    while (!driver!.isProbed) await cpu.sleep(psPerMs);
    // The driver is restarting until its ports are active.
    await cpu.sleep(restartPs);
  }

  segments({ addr, mr }: Talk) {
    return { sgList: [{ addr, length: this.args.lengthBytes, lkey: mr.lkey }], numSge: 1 };
  }

  async completed({ cq }: Talk): Promise<boolean> {
    const wc = [new ibv.IbvWc()];
    const beganPs = nowPs(this.program);
    while ((await ibv.pollCq(cq, 1, wc)) === 0) {
      if (nowPs(this.program) - beganPs > messagePatiencePs) return false;
      await this.program.cpu.sleep(napPs);
    }
    return wc[0]!.status === ibv.IBV_WC_SUCCESS;
  }

  async close(): Promise<JsonValue> {
    for (let event = await this.next(psPerMs); event !== undefined; event = await this.next(psPerMs))
      await this.settle(event);
    for (const id of [...this.talks.keys()]) await this.end(id);
    await ibv.rdmaDestroyEventChannel(this.channel);
    return { wrong: this.wrong };
  }
}

const nameOf = (event: ibv.RdmaCmEventType): string => ibv.rdmaEventStr(event).replace('RDMA_CM_EVENT_', '');
const finals = [
  'ESTABLISHED',
  'REJECTED',
  'DEVICE_REMOVAL',
  'UNREACHABLE',
  'CONNECT_ERROR',
  'ADDR_ERROR',
  'ROUTE_ERROR',
];

/** Asks for a connection. @param meanwhile done when the REQ has left @returns the ID and the event in which it ended */
async function ask(
  party: Party,
  meanwhile: () => Promise<void> = async () => {},
): Promise<{ id: ibv.RdmaCmId; what: string }> {
  const id = await ibv.rdmaCreateId(party.channel, null, ibv.RDMA_PS_TCP);
  await ibv.rdmaResolveAddr(id, null, { sinAddr: '10.0.0.2', sinPort }, resolveMs);
  for (;;) {
    const event = await party.next(endPatiencePs);
    if (event === undefined) return { id, what: 'no event' };
    if (event.id !== id) {
      await party.settle(event);
      continue;
    }
    const what = nameOf(event.event);
    if (what === 'ADDR_RESOLVED') await ibv.rdmaResolveRoute(id, resolveMs);
    else if (what === 'ROUTE_RESOLVED') {
      await party.build(id);
      await unlessDead(ibv.rdmaConnect(id, { retryCount: 7, rnrRetryCount: 7 }));
      await meanwhile();
    } else if (finals.includes(what))
      return { id, what: event.status === 0 ? what : `${what} ${event.status}` };
  }
}

export async function client(program: ProgramContext): Promise<JsonValue> {
  const { exchange, cpu, memory } = program;
  await exchange.take('listening');
  const party = new Party(program, await ibv.rdmaCreateEventChannel(program.verbs));
  const { rounds, lengthBytes } = party.args;
  for (const [number, { victim, restNs }] of rounds.entries()) {
    const { id, what } = await ask(party, async () => {
      await exchange.put(`asked ${number}`, true);
      await cpu.sleep(restNs * psPerNs);
      if (victim === 0) await party.reset();
    });
    const due = victim === 0 ? ['ESTABLISHED', 'DEVICE_REMOVAL'] : ['ESTABLISHED', `REJECTED ${reasonStale}`];
    if (!due.includes(what)) party.wrong.push(`round ${number}: ${what}, due ${due.join(' or ')}`);
    await party.end(id);
    await exchange.put(`round ${number} is over`, true);
    await connectAndSend(party, number, memory, lengthBytes);
    await exchange.put(`message ${number} is over`, true);
  }
  return await party.close();
}

async function connectAndSend(
  party: Party,
  number: number,
  memory: ProgramContext['memory'],
  lengthBytes: number,
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const { id, what } = await ask(party);
    if (what === 'ESTABLISHED') {
      const talk = party.talks.get(id)!;
      memory.write(talk.addr, patternOf(number, lengthBytes));
      const { IBV_WR_SEND: opcode, IBV_SEND_SIGNALED: sendFlags } = ibv;
      ibv.postSend(talk.qp, { wrId: 1, opcode, sendFlags, ...party.segments(talk) });
      if (!(await party.completed(talk))) party.wrong.push(`message ${number} did not end well`);
      return;
    }
    await party.end(id);
    // Each connection that the server still holds may have one request refused as stale.
    if (what === `REJECTED ${reasonStale}` && attempt < attemptsMax) continue;
    party.wrong.push(`connection ${number}, attempt ${attempt}: ${what}`);
    return;
  }
}

export async function server(program: ProgramContext): Promise<JsonValue> {
  const { exchange, cpu, memory } = program;
  const channel = await ibv.rdmaCreateEventChannel(program.verbs);
  const listener = await ibv.rdmaCreateId(channel, null, ibv.RDMA_PS_TCP);
  await ibv.rdmaBindAddr(listener, { sinAddr: '0.0.0.0', sinPort });
  await ibv.rdmaListen(listener, 8);
  await exchange.put('listening', true);
  const party = new Party(program, channel);
  const { rounds, lengthBytes } = party.args;
  for (const [number, { victim, restNs }] of rounds.entries()) {
    await exchange.take(`asked ${number}`);
    if (victim === 1) {
      await cpu.sleep(restNs * psPerNs);
      await party.reset();
    }
    await serveUntil(party, `round ${number} is over`);
    const message = await serveUntil(party, `message ${number} is over`);
    const came = message === undefined ? new Uint8Array(0) : memory.read(message.addr, lengthBytes);
    if (message !== undefined)
      party.wrong.push(...differencesOf(`message ${number}`, came, patternOf(number, lengthBytes)));
  }
  await ibv.rdmaDestroyId(listener);
  return await party.close();
}

/** Accepts and takes messages until the client says so. @returns the connection that brought the last message */
async function serveUntil(party: Party, over: string): Promise<Talk | undefined> {
  let found: Talk | undefined;
  while ((await party.program.exchange.poll(over)) === undefined) {
    const event = await party.next(psPerMs);
    if (event === undefined) continue;
    const { id } = event;
    if (event.event === ibv.RDMA_CM_EVENT_CONNECT_REQUEST) {
      await unlessDead(accept(party, id));
    } else if (event.event === ibv.RDMA_CM_EVENT_ESTABLISHED) {
      const talk = party.talks.get(id)!;
      if (await party.completed(talk)) found = talk;
    } else await party.settle(event);
  }
  return found;
}

async function accept(party: Party, id: ibv.RdmaCmId): Promise<void> {
  const talk = await party.build(id);
  party.program.memory.write(talk.addr, new Uint8Array(party.args.lengthBytes));
  ibv.postRecv(talk.qp, { wrId: 1, ...party.segments(talk) });
  await ibv.rdmaAccept(id);
}

/** What a call brings, or that the device has died under it (EIO). */
async function unlessDead<T>(call: Promise<T>): Promise<T | 'dead'> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof ibv.VerbsError && error.code === 'EIO') return 'dead';
    throw error;
  }
}

export const resetWhileConnecting: Scene = {
  name: 'reset-while-connecting',
  about:
    'the device of either side is reset while a request of rdma_cm is under way, and the next one is answered',
  module: import.meta.url,
  programs: [
    { node: 0, exportName: 'client' },
    { node: 1, exportName: 'server' },
  ],
  draw,
  breaksRules: ['left-at-reset', 'doorbell-unknown-qp'],
  hasResets: true,
  judge: ({ results }) => wrongOf(results as unknown as readonly Wrong[]),
};
