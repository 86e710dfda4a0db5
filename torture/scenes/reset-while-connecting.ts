/**
 * A device is reset while a REQ of rdma_cm is under way: the client's, before the answer comes, or the server's, before it answers. The
 * client's ID then ends once, in DEVICE_REMOVAL if its own device was reset, established or refused if the server's was (the REQ is sent again
 * after a CM time-out; IBTA volume 1, 12.9.8). Whatever became of it, the next connection is established and carries its message.
 *
 *     client: REQ ──── rest ──── reset? ── one end of the ID ──► barrier ──► connect again ──► message
 *     server: the same listener accepts ── reset? ───────────────► barrier ──► accept, receive
 */
import { psPerMs, psPerUs } from '../../base/index.ts';
import type { Driver } from '../../driver/index.ts';
import type { Random } from '../../sim/index.ts';
import * as ibv from '../../userlib/index.ts';
import { CmConnection, cmPort, cmServer, nameOf } from './cm-connection.ts';
import type { ArgsOf, Draft, Stage } from './language/index.ts';
import { oneOf, patternOf, scene, times, topic } from './language/index.ts';

const resolveMs = 2000;
const reasonStale = 10;
const maxBytes = 4096;
const napPs = 20 * psPerUs;
/** All repetitions of a REQ: 16 time-outs of some eight seconds. */
const endPatiencePs = 200_000 * psPerMs;
const messagePatiencePs = 2000 * psPerMs;
const attemptsMax = 4;
const restartPs = 200 * psPerMs;

function draw(random: Random) {
  const args = {
    rounds: times(1 + random.below(3), () => ({
      // Node whose device is reset …
      victim: random.below(2),
      // … that long after the REQ was posted. A REQ and its REP take some tens of microseconds.
      restNs: random.below(oneOf(random, [100, 5000, 60_000, 400_000])),
    })),
    lengthBytes: 1 + random.below(maxBytes),
  };
  return { args, hasDrawnHardware: random.chance(0.2), sleepsSeconds: 1200 } satisfies Draft<unknown>;
}

type Args = ArgsOf<typeof draw>;

const listening = topic<true>('listening');
const asked = (number: number) => topic<true>(`asked ${number}`);
const roundOver = (number: number) => topic<true>(`round ${number} is over`);
const messageOver = (number: number) => topic<true>(`message ${number} is over`);

/** One side: its channel, its open IDs, and what it finds wrong. */
class Party {
  readonly connections = new Map<ibv.RdmaCmId, CmConnection>();
  readonly stage: Stage<Args>;
  readonly channel: ibv.RdmaEventChannel;

  constructor(stage: Stage<Args>, channel: ibv.RdmaEventChannel) {
    this.stage = stage;
    this.channel = channel;
  }

  async build(id: ibv.RdmaCmId): Promise<CmConnection> {
    const connection = await CmConnection.build(id, this.stage.memory, maxBytes);
    this.connections.set(id, connection);
    return connection;
  }

  /** Destroys an ID and what belongs to it. */
  async end(id: ibv.RdmaCmId): Promise<void> {
    const connection = this.connections.get(id);
    this.connections.delete(id);
    if (connection === undefined) await ibv.rdmaDestroyId(id);
    else await connection.end();
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
    if (event !== ibv.RDMA_CM_EVENT_TIMEWAIT_EXIT && this.connections.has(id)) await this.end(id);
  }

  /** Resets the own device as Linux does after an internal error, and waits until its driver is back. */
  async reset(): Promise<void> {
    const driver = this.stage.context.verbs.devices[0] as Driver;
    driver.device.lifecycle.die('the scene wants it');
    while (!driver.isProbed) await this.stage.sleepMs(1);
    // The driver is restarting until its ports are active.
    await this.stage.cpu.sleep(restartPs);
  }

  async completed({ cq }: CmConnection): Promise<boolean> {
    const [end] = await this.stage.watch(cq, 1, { napPs, patiencePs: messagePatiencePs });
    return end?.status === 'SUCCESS';
  }

  async close(): Promise<void> {
    for (let event = await this.next(psPerMs); event !== undefined; event = await this.next(psPerMs))
      await this.settle(event);
    for (const id of [...this.connections.keys()]) await this.end(id);
    await ibv.rdmaDestroyEventChannel(this.channel);
  }
}

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
  await ibv.rdmaResolveAddr(id, null, { sinAddr: cmServer, sinPort: cmPort }, resolveMs);
  for (;;) {
    const event = await party.next(endPatiencePs);
    if (event === undefined) return { id, what: 'no event' };
    if (event.id !== id) {
      await party.settle(event);
      continue;
    }
    const what = nameOf(event);
    if (what === 'ADDR_RESOLVED') await ibv.rdmaResolveRoute(id, resolveMs);
    else if (what === 'ROUTE_RESOLVED') {
      await party.build(id);
      await unlessDead(ibv.rdmaConnect(id, { retryCount: 7, rnrRetryCount: 7 }));
      await meanwhile();
    } else if (finals.includes(what))
      return { id, what: event.status === 0 ? what : `${what} ${event.status}` };
  }
}

async function client(stage: Stage<Args>): Promise<void> {
  await stage.take(listening);
  const party = new Party(stage, await ibv.rdmaCreateEventChannel(stage.context.verbs));
  for (const [number, { victim, restNs }] of stage.args.rounds.entries()) {
    const { id, what } = await ask(party, async () => {
      await stage.put(asked(number), true);
      await stage.sleepNs(restNs);
      if (victim === 0) await party.reset();
    });
    const due = victim === 0 ? ['ESTABLISHED', 'DEVICE_REMOVAL'] : ['ESTABLISHED', `REJECTED ${reasonStale}`];
    if (!due.includes(what)) stage.accuse(`round ${number}: ${what}, due ${due.join(' or ')}`);
    await party.end(id);
    await stage.put(roundOver(number), true);
    await connectAndSend(party, number);
    await stage.put(messageOver(number), true);
  }
  await party.close();
}

async function connectAndSend(party: Party, number: number): Promise<void> {
  const { stage } = party;
  for (let attempt = 1; ; attempt++) {
    const { id, what } = await ask(party);
    if (what === 'ESTABLISHED') {
      const connection = party.connections.get(id)!;
      stage.memory.write(connection.address, patternOf(number, stage.args.lengthBytes));
      connection.send(1, stage.args.lengthBytes);
      if (!(await party.completed(connection))) stage.accuse(`message ${number} did not end well`);
      return;
    }
    await party.end(id);
    // Each connection that the server still holds may have one request refused as stale.
    if (what === `REJECTED ${reasonStale}` && attempt < attemptsMax) continue;
    stage.accuse(`connection ${number}, attempt ${attempt}: ${what}`);
    return;
  }
}

async function server(stage: Stage<Args>): Promise<void> {
  const channel = await ibv.rdmaCreateEventChannel(stage.context.verbs);
  const listener = await ibv.rdmaCreateId(channel, null, ibv.RDMA_PS_TCP);
  await ibv.rdmaBindAddr(listener, { sinAddr: '0.0.0.0', sinPort: cmPort });
  await ibv.rdmaListen(listener, 8);
  await stage.put(listening, true);
  const party = new Party(stage, channel);
  const { rounds, lengthBytes } = stage.args;
  for (const [number, { victim, restNs }] of rounds.entries()) {
    await stage.take(asked(number));
    if (victim === 1) {
      await stage.sleepNs(restNs);
      await party.reset();
    }
    await serveUntil(party, roundOver(number).name);
    const message = await serveUntil(party, messageOver(number).name);
    if (message !== undefined)
      stage.expectAt(`message ${number}`, message.address, patternOf(number, lengthBytes));
  }
  await ibv.rdmaDestroyId(listener);
  await party.close();
}

/** Accepts and takes messages until the client says so. @returns the connection that brought the last message */
async function serveUntil(party: Party, over: string): Promise<CmConnection | undefined> {
  let found: CmConnection | undefined;
  while ((await party.stage.context.exchange.poll(over)) === undefined) {
    const event = await party.next(psPerMs);
    if (event === undefined) continue;
    const { id } = event;
    if (event.event === ibv.RDMA_CM_EVENT_CONNECT_REQUEST) {
      await unlessDead(accept(party, id));
    } else if (event.event === ibv.RDMA_CM_EVENT_ESTABLISHED) {
      const connection = party.connections.get(id)!;
      if (await party.completed(connection)) found = connection;
    } else await party.settle(event);
  }
  return found;
}

async function accept(party: Party, id: ibv.RdmaCmId): Promise<void> {
  const { stage } = party;
  const connection = await party.build(id);
  stage.memory.write(connection.address, new Uint8Array(stage.args.lengthBytes));
  connection.receive(1, 0, stage.args.lengthBytes);
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

export const resetWhileConnecting = scene({
  name: 'reset-while-connecting',
  about:
    'the device of either side is reset while a request of rdma_cm is under way, and the next one is answered',
  module: import.meta.url,
  breaksRules: ['left-at-reset', 'doorbell-unknown-qp'],
  hasResets: true,
  draw,
  programs: [client, server],
});
export const { program0, program1 } = resetWhileConnecting.run;
