/**
 * Connections by rdma_cm whose devices are reset between them, at either side or both, several times. The IDs of a device that was reset have
 * DEVICE_REMOVAL, once; a listener at any address outlives it; a peer that still has the old connection may refuse a request as stale (REJ 10,
 * IBTA volume 1, 12.9.8.3.1), at most once for each such connection; and every connection is established and carries its message within a bounded
 * time, which a request that is lost or ignored exceeds.
 *
 *     client: connect ─► message ──► reset? ─► barrier ─► connect again ─► …
 *     server: accept, receive ─────► reset? ─► barrier ─► the same listener accepts ─► …
 */
import { psPerMs } from '../../base/index.ts';
import type { Driver } from '../../driver/index.ts';
import type { Random } from '../../sim/index.ts';
import * as ibv from '../../userlib/index.ts';
import { CmConnection, cmPort, cmServer, nameOf } from './cm-connection.ts';
import type { ArgsOf, Draft, Played, Stage } from './language/index.ts';
import { oneOf, patternOf, scene, sumOf, times, topic } from './language/index.ts';

const resolveMs = 2000;
const reasonStale = 10;
const maxBytes = 4096;
/** For one request and its answer: a REQ that got no answer is repeated after more than four seconds. */
const attemptPs = 2000 * psPerMs;
const resetPatiencePs = 10_000 * psPerMs;

function draw(random: Random) {
  const choices = [[0], [1], [0, 1], [1, 0], [0, 0], [1, 1], []] as const;
  const args = {
    rounds: times(2 + random.below(4), () => ({
      // Connections that are made one after the other, and stay.
      count: 1 + random.below(3),
      // Nodes whose devices are reset afterwards, in this order.
      resets: oneOf<readonly number[]>(random, choices),
    })),
    lengthBytes: 1 + random.below(maxBytes),
  };
  return { args, hasDrawnHardware: random.chance(0.2), sleepsSeconds: 600 } satisfies Draft<unknown>;
}

type Args = ArgsOf<typeof draw>;

/** Requests of a side that were refused as stale, and connections that it was told have ended. */
interface Told {
  readonly refused: number;
  readonly ended: number;
}

/** One side, and its connections. */
class Party {
  refused = 0;
  /** Each with the number of resets of the own device before it was made. */
  readonly #connections = new Map<
    ibv.RdmaCmId,
    { readonly connection: CmConnection; readonly life: number }
  >();
  readonly #stage: Stage<Args>;
  readonly #channel: ibv.RdmaEventChannel;
  #life = 0;
  #ended = 0;

  constructor(stage: Stage<Args>, channel: ibv.RdmaEventChannel) {
    this.#stage = stage;
    this.#channel = channel;
  }

  async build(id: ibv.RdmaCmId): Promise<CmConnection> {
    const connection = await CmConnection.build(id, this.#stage.memory, maxBytes);
    this.#connections.set(id, { connection, life: this.#life });
    return connection;
  }

  of(id: ibv.RdmaCmId): CmConnection {
    return this.#connections.get(id)!.connection;
  }

  async end(connection: CmConnection): Promise<void> {
    this.#connections.delete(connection.id);
    await connection.end();
  }

  /** The next event of the channel, acknowledged. */
  async next(patiencePs: number): Promise<ibv.RdmaCmEvent | undefined> {
    const event = await ibv.rdmaGetCmEvent(this.#channel, patiencePs);
    if (event !== undefined) ibv.rdmaAckCmEvent(event);
    return event;
  }

  /** Ends what an event ends that is not of a connection being made. */
  async settle(event: ibv.RdmaCmEvent): Promise<void> {
    const name = nameOf(event);
    const held = this.#connections.get(event.id);
    if (name === 'TIMEWAIT_EXIT') return;
    if (name === 'DISCONNECTED') this.#ended++;
    if (held === undefined)
      return this.#stage.accuse(`${name} ${event.status} of an ID without a connection`);
    const isRemoval = name === 'DEVICE_REMOVAL';
    const isStale = name === 'REJECTED' && event.status === reasonStale;
    if (isRemoval && held.life === this.#life)
      this.#stage.accuse('DEVICE_REMOVAL of a device that was not reset');
    if (!isRemoval && !isStale && name !== 'DISCONNECTED')
      this.#stage.accuse(`${name} ${event.status} of a connection`);
    await this.end(held.connection);
  }

  /** Waits for a completion. */
  async completed({ cq }: CmConnection): Promise<void> {
    const beganPs = this.#stage.nowPs;
    let [end] = await this.#stage.poll(cq, 1);
    while (end === undefined && this.#stage.nowPs - beganPs <= attemptPs) {
      await this.#stage.sleepUs(20);
      [end] = await this.#stage.poll(cq, 1);
    }
    if (end?.status !== 'SUCCESS') this.#stage.accuse(`a message ended in ${end?.status}`);
  }

  /** Resets the own device as Linux does after an internal error, if it is this node's turn; both sides wait for it. */
  async resets(number: number): Promise<void> {
    const stage = this.#stage;
    const driver = stage.context.verbs.devices[0] as Driver;
    for (const victim of stage.args.rounds[number]!.resets) {
      await stage.meet('reset');
      if (victim === stage.node) {
        this.#life++;
        driver.device.lifecycle.die('the scene wants it');
        const beganPs = stage.nowPs;
        while (!driver.isProbed && stage.nowPs - beganPs < resetPatiencePs) await stage.sleepMs(1);
        await this.#takeEvents();
        for (const { connection, life } of [...this.#connections.values()]) {
          if (life === this.#life) continue;
          stage.accuse('a connection of a device that was reset has no DEVICE_REMOVAL');
          await this.end(connection);
        }
      }
      await stage.meet('reset is over');
    }
  }

  /** Takes the events that have come. */
  async #takeEvents(): Promise<void> {
    for (let event = await this.next(psPerMs); event !== undefined; event = await this.next(psPerMs))
      await this.settle(event);
  }

  async close(): Promise<Told> {
    await this.#takeEvents();
    for (const { connection } of [...this.#connections.values()]) await this.end(connection);
    await ibv.rdmaDestroyEventChannel(this.#channel);
    return { refused: this.refused, ended: this.#ended };
  }
}

const listening = topic<true>('listening');

/** Connects as often as it has to, and sends a message by each connection. */
async function client(stage: Stage<Args>): Promise<Told> {
  const { rounds, lengthBytes } = stage.args;
  await stage.take(listening);
  const channel = await ibv.rdmaCreateEventChannel(stage.context.verbs);
  const party = new Party(stage, channel);
  let opened = 0;
  for (const [number, { count }] of rounds.entries()) {
    for (const last = opened + count; opened < last; ) {
      for (let attempts = 1; ; attempts++) {
        const where = `round ${number}, attempt ${attempts}, after ${opened} connections`;
        const beganPs = stage.nowPs;
        const { connection, what } = await attempt(party, channel, stage);
        const tookPs = stage.nowPs - beganPs;
        if (tookPs > attemptPs) stage.accuse(`${where}: ${what} after ${tookPs} ps`);
        if (connection !== undefined) {
          stage.memory.write(connection.address, patternOf(opened, lengthBytes));
          connection.send(1, lengthBytes);
          await party.completed(connection);
          break;
        }
        party.refused++;
        // Each refusal ends a connection of before a reset.
        if (what !== `REJECTED ${reasonStale}` || attempts > opened) stage.accuse(`${where}: ${what}`);
        if (attempts > opened) break;
      }
      opened++;
    }
    await stage.meet('round');
    await party.resets(number);
  }
  await stage.meet('all is over');
  return party.close();
}

/** Asks for one connection. @returns what came of it, and the connection if it is established */
async function attempt(
  party: Party,
  channel: ibv.RdmaEventChannel,
  { cpu }: Stage<Args>,
): Promise<{ connection?: CmConnection; what: string }> {
  const id = await ibv.rdmaCreateId(channel, null, ibv.RDMA_PS_TCP);
  await ibv.rdmaResolveAddr(id, null, { sinAddr: cmServer, sinPort: cmPort }, resolveMs);
  let connection: CmConnection | undefined;
  for (;;) {
    const event = await party.next(20 * attemptPs);
    if (event === undefined) return { what: 'no event' };
    const what = `${nameOf(event)} ${event.status}`;
    if (event.id !== id) await party.settle(event);
    else if (what === 'ADDR_RESOLVED 0') await ibv.rdmaResolveRoute(id, resolveMs);
    else if (what === 'ROUTE_RESOLVED 0') {
      connection = await party.build(id);
      await ibv.rdmaConnect(id, { retryCount: 7, rnrRetryCount: 7 });
    } else if (what === 'ESTABLISHED 0') {
      await cpu.settle();
      return { connection: connection!, what };
    } else {
      await (connection === undefined ? ibv.rdmaDestroyId(id) : party.end(connection));
      return { what };
    }
  }
}

/** Accepts by one listener at any address, and takes a message of each connection. */
async function server(stage: Stage<Args>): Promise<Told> {
  const { memory } = stage;
  const { rounds, lengthBytes } = stage.args;
  const channel = await ibv.rdmaCreateEventChannel(stage.context.verbs);
  const listener = await ibv.rdmaCreateId(channel, null, ibv.RDMA_PS_TCP);
  await ibv.rdmaBindAddr(listener, { sinAddr: '0.0.0.0', sinPort: cmPort });
  await ibv.rdmaListen(listener, 4);
  await stage.put(listening, true);
  const party = new Party(stage, channel);
  let taken = 0;
  for (const [number, { count }] of rounds.entries()) {
    for (const last = taken + count; taken < last; ) {
      const event = await party.next(20 * attemptPs);
      if (event === undefined) {
        stage.accuse(`round ${number}: no request came`);
        break;
      }
      if (nameOf(event) === 'CONNECT_REQUEST') {
        const connection = await party.build(event.id);
        memory.write(connection.address, new Uint8Array(lengthBytes));
        connection.receive(1, 0, lengthBytes);
        await ibv.rdmaAccept(event.id);
      } else if (nameOf(event) === 'ESTABLISHED') {
        const connection = party.of(event.id);
        await party.completed(connection);
        stage.expectAt(`message ${taken}`, connection.address, patternOf(taken, lengthBytes));
        taken++;
      } else await party.settle(event);
    }
    await stage.meet('round');
    await party.resets(number);
  }
  await stage.meet('all is over');
  await ibv.rdmaDestroyId(listener);
  return party.close();
}

function judge({ told }: Played<Args, readonly Told[]>): string[] {
  const [refused, ended] = [sumOf(told.map((one) => one.refused)), sumOf(told.map((one) => one.ended))];
  // A side that refuses a request as stale ends the connection that it holds (12.9.8.3.1).
  return refused === ended ? [] : [`${refused} requests were refused as stale, ${ended} connections ended`];
}

export const reconnects = scene({
  name: 'reconnects',
  about: 'devices of either side are reset between connections by rdma_cm, which are made again and again',
  module: import.meta.url,
  breaksRules: ['left-at-reset', 'doorbell-unknown-qp'],
  hasResets: true,
  draw,
  programs: [client, server],
  judge,
});
export const { program0, program1 } = reconnects.run;
