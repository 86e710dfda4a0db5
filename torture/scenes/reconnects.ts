/**
 * Devices of either side are reset between connections by rdma_cm, several times. Each ID of a reset device has DEVICE_REMOVAL once; a listener at
 * any address outlives the reset; a peer with the old connection may refuse a request as stale (REJ 10, IBTA volume 1, 12.9.8.3.1), at most once
 * for each such connection; and every connection is established and carries its message within a time that a lost request would exceed.
 *
 *     client: connect ─► message ──► reset? ─► barrier ─► connect again ─► …
 *     server: accept, receive ─────► reset? ─► barrier ─► the same listener accepts ─► …
 */

import * as ibv from '../../userlib/index.ts';
import {
  type CmConnection,
  CmParty,
  cmBytesMax,
  cmPatiencePs,
  listen,
  listening,
  nameOf,
  reasonStale,
} from './cm-connection.ts';
import type { ArgsOf, Draft, Draws, Played, Stage } from './language/index.ts';
import { patternOf, scene, sumOf, times } from './language/index.ts';

function draw(random: Draws) {
  const choices = [[0], [1], [0, 1], [1, 0], [0, 0], [1, 1], []] as const;
  const args = {
    rounds: times(2 + random.below(4), () => ({
      // Connections that are made one after the other, and remain.
      count: 1 + random.below(3),
      // Nodes whose devices are reset afterwards, in this order.
      resets: random.oneOf<readonly number[]>(choices),
    })),
    lengthBytes: 1 + random.below(cmBytesMax),
  };
  return { args, hasDrawnHardware: random.chance(0.2), sleepsSeconds: 600 } satisfies Draft<unknown>;
}

type Args = ArgsOf<typeof draw>;

/** Requests of a side that were refused as stale, and connections whose end it was notified of. */
interface Told {
  readonly refused: number;
  readonly ended: number;
}

class Party extends CmParty<Args> {
  refused = 0;
  /** The number of resets of the own device before each ID was created. */
  readonly #lives = new Map<ibv.RdmaCmId, number>();
  #life = 0;
  #ended = 0;

  override build(id: ibv.RdmaCmId): Promise<CmConnection> {
    this.#lives.set(id, this.#life);
    return super.build(id);
  }

  /** Ends the connection of an event, and accuses unexpected events. */
  override async settle(event: ibv.RdmaCmEvent): Promise<void> {
    const { stage } = this;
    const { id, status } = event;
    const name = nameOf(event);
    if (name === 'TIMEWAIT_EXIT') return;
    if (name === 'DISCONNECTED') this.#ended++;
    if (!this.connections.has(id)) return stage.accuse(`${name} ${status} of an ID without a connection`);
    if (name === 'DEVICE_REMOVAL' && this.#lives.get(id) === this.#life)
      stage.accuse('DEVICE_REMOVAL of a device that was not reset');
    const isStale = name === 'REJECTED' && status === reasonStale;
    if (!['DEVICE_REMOVAL', 'DISCONNECTED'].includes(name) && !isStale)
      stage.accuse(`${name} ${status} of a connection`);
    await this.end(id);
  }

  /** Accuses of a message that did not end well. */
  judge(status: string | undefined): void {
    if (status !== 'SUCCESS') this.stage.accuse(`a message ended in ${status}`);
  }

  /** Resets the own device if it is this node's turn; both sides wait for it. */
  async resets(number: number): Promise<void> {
    const { stage } = this;
    for (const victim of stage.args.rounds[number]!.resets) {
      await stage.meet('reset');
      if (victim === stage.node) {
        this.#life++;
        await this.reset();
        await this.settleAll();
        for (const id of [...this.connections.keys()]) {
          if (this.#lives.get(id) === this.#life) continue;
          stage.accuse('a connection of a device that was reset has no DEVICE_REMOVAL');
          await this.end(id);
        }
      }
      await stage.meet('reset is over');
    }
  }

  async told(): Promise<Told> {
    await this.close();
    return { refused: this.refused, ended: this.#ended };
  }
}

/** Connects as often as it has to, and sends a message by each connection. */
async function client(stage: Stage<Args>): Promise<Told> {
  const { rounds, lengthBytes } = stage.args;
  await stage.take(listening);
  const party = new Party(stage, await ibv.rdmaCreateEventChannel(stage.context.verbs));
  let opened = 0;
  for (const [number, { count }] of rounds.entries()) {
    for (const last = opened + count; opened < last; ) {
      for (let attempts = 1; ; attempts++) {
        const where = `round ${number}, attempt ${attempts}, after ${opened} connections`;
        const beganPs = stage.nowPs;
        const { id, what } = await party.ask(20 * cmPatiencePs);
        const isEstablished = what === 'ESTABLISHED';
        await (isEstablished ? stage.cpu.settle() : party.end(id));
        const tookPs = stage.nowPs - beganPs;
        if (tookPs > cmPatiencePs) stage.accuse(`${where}: ${what} after ${tookPs} ps`);
        if (isEstablished) {
          party.judge(await party.send(id, patternOf(opened, lengthBytes)));
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
  return party.told();
}

/** Accepts by one listener at any address, and takes a message of each connection. */
async function server(stage: Stage<Args>): Promise<Told> {
  const { rounds, lengthBytes } = stage.args;
  const channel = await ibv.rdmaCreateEventChannel(stage.context.verbs);
  const listener = await listen(stage, channel, 4);
  const party = new Party(stage, channel);
  let taken = 0;
  for (const [number, { count }] of rounds.entries()) {
    for (const last = taken + count; taken < last; ) {
      const event = await party.next(20 * cmPatiencePs);
      if (event === undefined) {
        stage.accuse(`round ${number}: no request came`);
        break;
      }
      const { id } = event;
      if (nameOf(event) === 'CONNECT_REQUEST') await party.accept(id, lengthBytes);
      else if (nameOf(event) === 'ESTABLISHED') {
        party.judge(await party.completed(id));
        const { address } = party.connections.get(id)!;
        stage.expectAt(`message ${taken}`, address, patternOf(taken, lengthBytes));
        taken++;
      } else await party.settle(event);
    }
    await stage.meet('round');
    await party.resets(number);
  }
  await stage.meet('all is over');
  await ibv.rdmaDestroyId(listener);
  return party.told();
}

function judge({ told }: Played<Args, readonly Told[]>): string[] {
  const [refused, ended] = [sumOf(told.map((one) => one.refused)), sumOf(told.map((one) => one.ended))];
  // A side that refuses a request as stale ends the connection that it holds (12.9.8.3.1).
  return refused === ended ? [] : [`${refused} requests were refused as stale, ${ended} connections ended`];
}

export const reconnects = scene({
  about: 'devices of either side are reset between connections by rdma_cm, which are made again and again',
  breaksRules: ['left-at-reset', 'doorbell-unknown-qp'],
  hasResets: true,
  draw,
  programs: [client, server],
  judge,
});
