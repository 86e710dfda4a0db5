/**
 * Connections by rdma_cm whose devices are reset between them, at either side or both, several times. The IDs of a device that was reset
 * have DEVICE_REMOVAL, once; a listener at any address outlives it; a peer that still has the old connection may refuse a request as
 * stale (REJ 10, IBTA volume 1, 12.9.8.3.1), at most once for each such connection; and every connection is established and carries its
 * message within a bounded time, which a request that is lost or ignored exceeds.
 *
 *     client: connect ─► message ──► reset? ─► barrier ─► connect again ─► …
 *     server: accept, receive ─────► reset? ─► barrier ─► the same listener accepts ─► …
 */
import { psPerMs, psPerUs } from '../../base/index.ts';
import type { Driver } from '../../driver/index.ts';
import { barrier } from '../../experiments/workloads/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import * as ibv from '../../userlib/index.ts';
import { nowPs } from './pair.ts';
import { differencesOf, patternOf, type Wrong, wrongOf } from './patterns.ts';
import type { Scene, SceneDraft } from './scene.ts';

interface Round {
  /** Connections that are made one after the other, and stay. */
  readonly count: number;
  /** Nodes whose devices are reset afterwards, in this order. */
  readonly resets: readonly number[];
}

interface Args {
  readonly rounds: readonly Round[];
  readonly lengthBytes: number;
}

const sinPort = 7471;
const resolveMs = 2000;
const reasonStale = 10;
const maxBytes = 4096;
/** For one request and its answer: a REQ that got no answer is repeated after more than four seconds. */
const attemptPs = 2000 * psPerMs;
const resetPatiencePs = 10_000 * psPerMs;

function draw(random: Random): SceneDraft {
  const choices = [[0], [1], [0, 1], [1, 0], [0, 0], [1, 1], []] as const;
  const args: Args = {
    rounds: Array.from({ length: 2 + random.below(4) }, () => ({
      count: 1 + random.below(3),
      resets: choices[random.below(choices.length)]!,
    })),
    lengthBytes: 1 + random.below(maxBytes),
  };
  return { args: args as unknown as JsonValue, hasDrawnHardware: random.chance(0.2), sleepsSeconds: 600 };
}

interface Told extends Wrong {
  readonly refused: number;
  readonly ended: number;
}

/** An ID with what its message needs. */
interface Talk {
  readonly id: ibv.RdmaCmId;
  readonly pd: ibv.IbvPd;
  readonly mr: ibv.IbvMr;
  readonly cq: ibv.IbvCq;
  readonly qp: ibv.IbvQp;
  readonly addr: number;
  /** Resets of the own device before it was made. */
  readonly life: number;
}

/** One side: its talks, and what it finds wrong. */
class Party {
  readonly wrong: string[] = [];
  readonly talks = new Map<ibv.RdmaCmId, Talk>();
  life = 0;
  /** Requests of its own that were refused as stale, and connections that it was told have ended. */
  refused = 0;
  ended = 0;
  readonly #program: ProgramContext;
  readonly #args: Args;
  readonly #channel: ibv.RdmaEventChannel;

  constructor(program: ProgramContext, channel: ibv.RdmaEventChannel) {
    this.#program = program;
    this.#args = program.args as unknown as Args;
    this.#channel = channel;
  }

  async build(id: ibv.RdmaCmId): Promise<Talk> {
    const { memory } = this.#program;
    const pd = await ibv.allocPd(id.verbs!);
    const addr = memory.map(maxBytes);
    const mr = await ibv.regMr(pd, addr, maxBytes, ibv.IBV_ACCESS_LOCAL_WRITE);
    const cq = await ibv.createCq(id.verbs!, 4);
    const cap = { maxSendWr: 1, maxRecvWr: 1, maxSendSge: 1, maxRecvSge: 1 };
    const qp = await ibv.rdmaCreateQp(id, pd, { sendCq: cq, recvCq: cq, qpType: ibv.IBV_QPT_RC, cap });
    const talk: Talk = { id, pd, mr, cq, qp, addr, life: this.life };
    this.talks.set(id, talk);
    return talk;
  }

  async end({ id, pd, mr, cq }: Talk): Promise<void> {
    this.talks.delete(id);
    await ibv.rdmaDestroyQp(id);
    await ibv.destroyCq(cq);
    await ibv.deregMr(mr);
    await ibv.deallocPd(pd);
    await ibv.rdmaDestroyId(id);
  }

  /** The next event of the channel, acknowledged. */
  async next(patiencePs: number): Promise<ibv.RdmaCmEvent | undefined> {
    const event = await ibv.rdmaGetCmEvent(this.#channel, patiencePs);
    if (event !== undefined) ibv.rdmaAckCmEvent(event);
    return event;
  }

  /** Ends what an event ends that is not of a connection being made. */
  async settle({ id, event, status }: ibv.RdmaCmEvent): Promise<void> {
    const talk = this.talks.get(id);
    const { RDMA_CM_EVENT_DISCONNECTED, RDMA_CM_EVENT_DEVICE_REMOVAL, RDMA_CM_EVENT_TIMEWAIT_EXIT } = ibv;
    if (event === RDMA_CM_EVENT_TIMEWAIT_EXIT) return;
    if (event === RDMA_CM_EVENT_DISCONNECTED) this.ended++;
    if (talk === undefined) {
      this.wrong.push(`${nameOf(event)} ${status} of an ID without a connection`);
      return;
    }
    const isRemoval = event === RDMA_CM_EVENT_DEVICE_REMOVAL;
    const isStale = event === ibv.RDMA_CM_EVENT_REJECTED && status === reasonStale;
    if (isRemoval && talk.life === this.life)
      this.wrong.push('DEVICE_REMOVAL of a device that was not reset');
    if (!isRemoval && !isStale && event !== RDMA_CM_EVENT_DISCONNECTED)
      this.wrong.push(`${nameOf(event)} ${status} of a connection`);
    await this.end(talk);
  }

  /** Waits for a completion. */
  async completed({ cq }: Talk): Promise<void> {
    const { cpu } = this.#program;
    const wc = [new ibv.IbvWc()];
    const beganPs = nowPs(this.#program);
    while ((await ibv.pollCq(cq, 1, wc)) === 0) {
      if (nowPs(this.#program) - beganPs > attemptPs) {
        this.wrong.push('a message did not end');
        return;
      }
      await cpu.sleep(20 * psPerUs);
    }
    if (wc[0]!.status !== ibv.IBV_WC_SUCCESS) this.wrong.push(`a message ended in status ${wc[0]!.status}`);
  }

  segments({ addr, mr }: Talk) {
    return { sgList: [{ addr, length: this.#args.lengthBytes, lkey: mr.lkey }], numSge: 1 };
  }

  /** Resets the own device as Linux does after an internal error, if it is this node's turn; both sides wait for it. */
  async resets(number: number): Promise<void> {
    const { cpu, node, verbs } = this.#program;
    const [driver] = verbs.devices as Driver[];
    for (const [turn, victim] of this.#args.rounds[number]!.resets.entries()) {
      await barrier(this.#program, `round ${number}, reset ${turn}`);
      if (victim === node) {
        this.life++;
        driver!.device.lifecycle.die('the scene wants it');
        const beganPs = nowPs(this.#program);
        while (!driver!.isProbed && nowPs(this.#program) - beganPs < resetPatiencePs)
          await cpu.sleep(psPerMs);
        await this.#takeRemovals();
      }
      await barrier(this.#program, `round ${number}, reset ${turn} is over`);
    }
  }

  /** Takes the events that have come. */
  async #takeEvents(): Promise<void> {
    for (let event = await this.next(psPerMs); event !== undefined; event = await this.next(psPerMs))
      await this.settle(event);
  }

  async #takeRemovals(): Promise<void> {
    await this.#takeEvents();
    const left = [...this.talks.values()].filter(({ life }) => life < this.life);
    if (left.length > 0)
      this.wrong.push(`${left.length} connections of a device that was reset have no DEVICE_REMOVAL`);
    for (const talk of left) await this.end(talk);
  }

  /** @returns what the judge sees */
  async close(): Promise<Told> {
    await this.#takeEvents();
    for (const talk of [...this.talks.values()]) await this.end(talk);
    await ibv.rdmaDestroyEventChannel(this.#channel);
    const { wrong, refused, ended } = this;
    return { wrong, refused, ended };
  }
}

const nameOf = (event: ibv.RdmaCmEventType): string => ibv.rdmaEventStr(event).replace('RDMA_CM_EVENT_', '');

/** Connects as often as it has to, and sends a message by each connection. */
export async function client(program: ProgramContext): Promise<JsonValue> {
  const { rounds, lengthBytes } = program.args as unknown as Args;
  const { memory, exchange } = program;
  await exchange.take('listening');
  const channel = await ibv.rdmaCreateEventChannel(program.verbs);
  const party = new Party(program, channel);
  let opened = 0;
  for (const [number, { count }] of rounds.entries()) {
    for (let connection = 0; connection < count; connection++) {
      const accuse = (what: string): unknown =>
        party.wrong.push(`round ${number}, connection ${connection}: ${what}`);
      for (let attempts = 1; ; attempts++) {
        const beganPs = nowPs(program);
        const { talk, what } = await attempt(party, channel, program);
        const tookPs = nowPs(program) - beganPs;
        if (tookPs > attemptPs) accuse(`${what} after ${tookPs} ps`);
        if (what === 'ESTABLISHED 0') {
          memory.write(talk!.addr, patternOf(opened, lengthBytes));
          const { IBV_WR_SEND: opcode, IBV_SEND_SIGNALED: sendFlags } = ibv;
          ibv.postSend(talk!.qp, { wrId: 1, opcode, sendFlags, ...party.segments(talk!) });
          await party.completed(talk!);
          opened++;
          break;
        }
        party.refused++;
        // Each refusal ends a connection of before a reset.
        if (what !== `REJECTED ${reasonStale}` || attempts > opened) {
          accuse(`attempt ${attempts}, after ${opened} connections: ${what}`);
          if (attempts > opened) break;
        }
      }
    }
    await barrier(program, `round ${number} is over`);
    await party.resets(number);
  }
  await barrier(program, 'all is over');
  return (await party.close()) as unknown as JsonValue;
}

/** Asks for one connection. @returns what came of it, and the connection if it is established */
async function attempt(
  party: Party,
  channel: ibv.RdmaEventChannel,
  { cpu }: ProgramContext,
): Promise<{ talk?: Talk; what: string }> {
  const id = await ibv.rdmaCreateId(channel, null, ibv.RDMA_PS_TCP);
  await ibv.rdmaResolveAddr(id, null, { sinAddr: '10.0.0.2', sinPort }, resolveMs);
  let talk: Talk | undefined;
  for (;;) {
    const event = await party.next(20 * attemptPs);
    if (event === undefined) return { what: 'no event' };
    if (event.id !== id) {
      await party.settle(event);
      continue;
    }
    const what = `${nameOf(event.event)} ${event.status}`;
    if (what === 'ADDR_RESOLVED 0') await ibv.rdmaResolveRoute(id, resolveMs);
    else if (what === 'ROUTE_RESOLVED 0') {
      talk = await party.build(id);
      await ibv.rdmaConnect(id, { retryCount: 7, rnrRetryCount: 7 });
    } else if (what === 'ESTABLISHED 0') {
      await cpu.settle();
      return { talk: talk!, what };
    } else {
      if (talk === undefined) await ibv.rdmaDestroyId(id);
      else await party.end(talk);
      return { what };
    }
  }
}

/** Accepts by one listener at any address, and takes a message of each connection. */
export async function server(program: ProgramContext): Promise<JsonValue> {
  const { rounds, lengthBytes } = program.args as unknown as Args;
  const { memory, exchange } = program;
  const channel = await ibv.rdmaCreateEventChannel(program.verbs);
  const listener = await ibv.rdmaCreateId(channel, null, ibv.RDMA_PS_TCP);
  await ibv.rdmaBindAddr(listener, { sinAddr: '0.0.0.0', sinPort });
  await ibv.rdmaListen(listener, 4);
  await exchange.put('listening', true);
  const party = new Party(program, channel);
  let taken = 0;
  for (const [number, { count }] of rounds.entries()) {
    for (const last = taken + count; taken < last; ) {
      const event = await party.next(20 * attemptPs);
      if (event === undefined) {
        party.wrong.push(`round ${number}: no request came`);
        break;
      }
      const { id } = event;
      if (event.event === ibv.RDMA_CM_EVENT_CONNECT_REQUEST) {
        const talk = await party.build(id);
        memory.write(talk.addr, new Uint8Array(lengthBytes));
        ibv.postRecv(talk.qp, { wrId: 1, ...party.segments(talk) });
        await ibv.rdmaAccept(id);
      } else if (event.event === ibv.RDMA_CM_EVENT_ESTABLISHED) {
        const talk = party.talks.get(id)!;
        await party.completed(talk);
        const came = memory.read(talk.addr, lengthBytes);
        party.wrong.push(...differencesOf(`message ${taken}`, came, patternOf(taken, lengthBytes)));
        taken++;
      } else await party.settle(event);
    }
    await barrier(program, `round ${number} is over`);
    await party.resets(number);
  }
  await barrier(program, 'all is over');
  await ibv.rdmaDestroyId(listener);
  return (await party.close()) as unknown as JsonValue;
}

export const reconnects: Scene = {
  name: 'reconnects',
  about: 'devices of either side are reset between connections by rdma_cm, which are made again and again',
  module: import.meta.url,
  programs: [
    { node: 0, exportName: 'client' },
    { node: 1, exportName: 'server' },
  ],
  draw,
  breaksRules: ['left-at-reset', 'doorbell-unknown-qp'],
  hasResets: true,
  judge: ({ results }) => {
    const told = results as unknown as readonly Told[];
    const refused = told.reduce((sum, one) => sum + one.refused, 0);
    const ended = told.reduce((sum, one) => sum + one.ended, 0);
    // A side that refuses a request as stale ends the connection that it holds (12.9.8.3.1).
    const found =
      refused === ended ? [] : [`${refused} requests were refused as stale, ${ended} connections ended`];
    return [...wrongOf(told), ...found];
  },
};
