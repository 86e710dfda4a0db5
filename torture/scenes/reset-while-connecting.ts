/**
 * A device is reset while a REQ of rdma_cm is in flight: the client's before the answer arrives, or the server's before it answers. The client's ID
 * then ends once: in DEVICE_REMOVAL after a reset of its own device, established or refused after one of the server's (the REQ is repeated after
 * a CM time-out; IBTA volume 1, 12.9.8). The next connection is established and carries its message.
 *
 *     client: REQ ──── rest ──── reset? ── one end of the ID ──► barrier ──► connect again ──► message
 *     server: the same listener accepts ── reset? ───────────────► barrier ──► accept, receive
 */

import * as ibv from '../../userlib/index.ts';
import { type CmConnection, CmParty, cmBytesMax, listen, listening, reasonStale } from './cm-connection.ts';
import type { ArgsOf, Draft, Draws, Stage } from './language/index.ts';
import { patternOf, psPerMs, scene, times, topic } from './language/index.ts';

/** All repetitions of a REQ: 16 time-outs of some eight seconds. */
const endPatiencePs = 200_000 * psPerMs;
const attemptsMax = 4;
const restartPs = 200 * psPerMs;

function draw(random: Draws) {
  const args = {
    rounds: times(1 + random.below(3), () => ({
      // Node whose device is reset …
      victim: random.below(2),
      // … that long after the REQ was posted. A REQ and its REP take some tens of microseconds.
      restNs: random.below(random.oneOf([100, 5000, 60_000, 400_000])),
    })),
    lengthBytes: 1 + random.below(cmBytesMax),
  };
  return { args, hasDrawnHardware: random.chance(0.2), sleepsSeconds: 1200 } satisfies Draft<unknown>;
}

type Args = ArgsOf<typeof draw>;

const asked = (number: number) => topic<true>(`asked ${number}`);
const roundOver = (number: number) => topic<true>(`round ${number} is over`);
const messageOver = (number: number) => topic<true>(`message ${number} is over`);

class Party extends CmParty<Args> {
  /** EIO may answer an event of an ID whose device was reset: the next event is returned then. */
  override async next(patiencePs: number): Promise<ibv.RdmaCmEvent | undefined> {
    for (;;) {
      const event = await unlessDead(super.next(patiencePs));
      if (event !== 'dead') return event;
    }
  }

  override async reset(): Promise<void> {
    await super.reset();
    // The driver is restarting until its ports are active.
    await this.stage.cpu.sleep(restartPs);
  }

  /** Requests a connection whose device may die. @param meanwhile done when the REQ has left */
  askThen(meanwhile: () => Promise<void>): Promise<{ id: ibv.RdmaCmId; what: string }> {
    return this.ask(endPatiencePs, async (id) => {
      await unlessDead(ibv.rdmaConnect(id, { retryCount: 7, rnrRetryCount: 7 }));
      await meanwhile();
    });
  }
}

async function client(stage: Stage<Args>): Promise<void> {
  await stage.take(listening);
  const party = new Party(stage, await ibv.rdmaCreateEventChannel(stage.context.verbs));
  for (const [number, { victim, restNs }] of stage.args.rounds.entries()) {
    const { id, what } = await party.askThen(async () => {
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
    const { id, what } = await party.askThen(async () => {});
    if (what === 'ESTABLISHED') {
      const status = await party.send(id, patternOf(number, stage.args.lengthBytes));
      if (status !== 'SUCCESS') stage.accuse(`message ${number} did not end well`);
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
  const listener = await listen(stage, channel, 8);
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

/**
 * Accepts connections and messages until the client ends it. @returns the connection of the last message
 */
async function serveUntil(party: Party, over: string): Promise<CmConnection | undefined> {
  let found: CmConnection | undefined;
  while ((await party.stage.context.exchange.poll(over)) === undefined) {
    const event = await party.next(psPerMs);
    if (event === undefined) continue;
    const { id } = event;
    if (event.event === ibv.RDMA_CM_EVENT_CONNECT_REQUEST) {
      await unlessDead(party.accept(id, party.stage.args.lengthBytes));
    } else if (event.event === ibv.RDMA_CM_EVENT_ESTABLISHED) {
      if ((await party.completed(id)) === 'SUCCESS') found = party.connections.get(id);
    } else await party.settle(event);
  }
  return found;
}

/** Returns the result of a call, or `dead` if the device died during it (EIO). */
async function unlessDead<T>(call: Promise<T>): Promise<T | 'dead'> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof ibv.VerbsError && error.code === 'EIO') return 'dead';
    throw error;
  }
}

export const resetWhileConnecting = scene({
  about:
    'the device of either side is reset while a request of rdma_cm is under way, and the next one is answered',
  breaksRules: ['left-at-reset', 'doorbell-unknown-qp'],
  hasResets: true,
  draw,
  programs: [client, server],
});
