/**
 * Two programs that exchange messages over a message channel, size by size: the measurement of `hca cutoff`. The
 * payload is checked outside the timed parts.
 */

import type { ProgramContext } from '../../machine/index.ts';
import { MessageChannel, type MessagingConfig, type Waiting } from '../../userlib/messaging/index.ts';
import { messagingConfigOf } from '../model/index.ts';
import { barrier, connectRc, openEndpoint } from './rc-endpoint.ts';

export interface MessagePingpongPlan {
  readonly config: MessagingConfig;
  readonly waiting: Waiting;
  /** Bytes of the messages, one series for each size. */
  readonly sizes: readonly number[];
  /** Measured round trips, after some unmeasured ones. */
  readonly rounds: number;
  readonly warmUpRounds: number;
}

export interface MessagePingpongRow {
  readonly size: number;
  /** Half of a round trip, the mean of all rounds. */
  readonly latencyPs: number;
  readonly eager: number;
  readonly rendezvous: number;
  readonly cacheHits: number;
  readonly cacheMisses: number;
  /** Messages with wrong bytes, among the checked ones (all untimed ones, and the last). */
  readonly wrong: number;
}

/**
 * Creates a channel and connects it to that of the program at the other host with the same label. It has the machine's
 * configuration with `changes`; a cut-off that neither names is computed from the machine's cost profile.
 */
export async function openMessageChannel(
  program: ProgramContext,
  label: string,
  changes: Partial<MessagingConfig>,
  waiting: Waiting,
): Promise<MessageChannel> {
  const config = messagingConfigOf(program.configuration, waiting, changes);
  const endpoint = await openEndpoint(program);
  const channel = await MessageChannel.create(endpoint.pd, config, waiting);
  await connectRc(endpoint, [channel.qp], label, null, () => channel.postReceives());
  return channel;
}

/** Byte `at` of message `round`: differs between rounds and between places. */
const patternByte = (round: number, at: number): number => (at * 31 + (at >>> 8) * 7 + round * 101) & 0xff;

const patternOf = (round: number, lengthBytes: number): Uint8Array<ArrayBuffer> =>
  Uint8Array.from({ length: lengthBytes }, (_, at) => patternByte(round, at));

/** Runs on both hosts; node 0 begins each round trip. */
export async function messagePingpong(
  program: ProgramContext<MessagePingpongPlan>,
): Promise<MessagePingpongRow[]> {
  const plan = program.args;
  const channel = await openMessageChannel(program, 'pingpong', plan.config, plan.waiting);
  const largest = Math.max(1, ...plan.sizes);
  const outgoing = program.memory.map(largest);
  const incoming = program.memory.map(largest);
  const rows: MessagePingpongRow[] = [];
  for (const size of plan.sizes)
    rows.push(await series(program, channel, plan, size, { outgoing, incoming }));
  await channel.flush();
  await barrier(program, 'done');
  await channel.close();
  return rows;
}

async function series(
  program: ProgramContext,
  channel: MessageChannel,
  { rounds, warmUpRounds }: MessagePingpongPlan,
  size: number,
  { outgoing, incoming }: { readonly outgoing: number; readonly incoming: number },
): Promise<MessagePingpongRow> {
  const before = { ...channel.counts, ...channel.cache.counts };
  const pattern = patternOf(size, size);
  program.memory.write(outgoing, pattern);
  let startPs = program.cpu.localPs;
  let elapsedPs = 0;
  let wrong = 0;
  for (let round = -warmUpRounds; round < rounds; round++) {
    if (round === 0) startPs = program.cpu.localPs;
    if (program.node === 0) await channel.send(outgoing, size);
    const received = await channel.receive(incoming, size);
    if (program.node !== 0) await channel.send(outgoing, size);
    if (round === rounds - 1) elapsedPs = program.cpu.localPs - startPs;
    const isLookedAt = round < 0 || round === rounds - 1;
    const isRight = !isLookedAt || isEqual(program.memory.read(incoming, size), pattern);
    if (received !== size || !isRight) wrong++;
  }
  return {
    size,
    latencyPs: elapsedPs / (2 * rounds),
    eager: channel.counts.eager - before.eager,
    rendezvous: channel.counts.rendezvous - before.rendezvous,
    cacheHits: channel.cache.counts.hits - before.hits,
    cacheMisses: channel.cache.counts.misses - before.misses,
    wrong,
  };
}

const isEqual = (left: Uint8Array, right: Uint8Array): boolean =>
  left.length === right.length && left.every((byte, at) => byte === right[at]);
