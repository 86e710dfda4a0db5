/**
 * The two sides of a comparison: load the data, connect the path, then send single messages for the latency and all of
 * them for all other figures. Both hosts' statistics are read at the agreed start and when both sides have ended.
 *
 *     load, connect, touch │ start … one message … end │ … │ start … all messages … end │ hash
 *                          └────── latency ────────────┘   └── costs, bandwidth ────────┘
 *
 * Work before the start is not measured: files, connections, registrations, page faults. The program of a passive side
 * sleeps from before the start until the end.
 */
import { InvariantError } from '../../base/index.ts';
import type { CoreThread } from '../../host/index.ts';
import { endLabel, type ProgramContext } from '../../machine/index.ts';
import { untilCableIsCounted, untilCableIsIdle } from './compare-cable.ts';
import {
  type CompareArgs,
  type CompareSide,
  type Message,
  messageCountOf,
  messagesAt,
  type SideResult,
  type SideTransfer,
  strideOf,
} from './compare-plan.ts';
import { readSide, sendSide, writeSide } from './compare-verbs.ts';
import { announceStart } from './perf-start.ts';
import { barrier } from './rc-endpoint.ts';
import { dmaSide, programmedSide } from './traditional-card.ts';
import { socketSide } from './traditional-sockets.ts';

/** Source of a comparison's bytes, and the digest by which both sides compare them. */
export interface CompareBytes {
  /** Writes them into the messages' places, in the memory of host 0's program. */
  fill(program: ProgramContext<CompareArgs>, messages: readonly Message[]): void;
  /** Equal for equal bytes, piece by piece. */
  digest(pieces: readonly Uint8Array[]): string;
}

/** Buffer of a side; the path registers it if necessary. */
export interface CompareBuffer {
  readonly address: number;
  readonly lengthBytes: number;
}

const connectors: Readonly<
  Record<CompareArgs['path'], (program: ProgramContext, buffer: CompareBuffer) => Promise<CompareSide>>
> = {
  pio: programmedSide,
  dma: dmaSide,
  sockets: socketSide,
  send: sendSide,
  write: writeSide,
  read: readSide,
};

/**
 * One side of a comparison.
 * @param node the host that it runs on: 0 has the bytes, 1 receives them
 */
export async function comparedSide(
  program: ProgramContext<CompareArgs>,
  node: 0 | 1,
  bytes: CompareBytes,
): Promise<SideResult> {
  const args = program.args;
  const { memory } = program;
  const lengthBytes = Math.max(1, messageCountOf(args)) * strideOf(args);
  const buffer = { address: memory.map(lengthBytes), lengthBytes };
  const messages = messagesAt(args, buffer.address);
  await memory.touch(buffer.address, lengthBytes, 'write');
  if (node === 0) bytes.fill(program, messages);
  const side = await connectors[args.path](program, buffer);
  const latencies: SideTransfer[] = [];
  for (let round = 0; round < args.latencyRounds; round++)
    latencies.push(await transfer(program, side, messages.slice(0, 1), `latency ${round}`));
  const { countsCable = false } = args;
  if (countsCable) await untilCableIsIdle(program);
  const stream = await transfer(program, side, messages, 'stream', countsCable);
  if (countsCable) await untilCableIsCounted(program);
  await side.close();
  const digest = bytes.digest(messages.map((message) => memory.read(message.address, message.lengthBytes)));
  return { latencies, stream, digest };
}

/** Bytes drawn from the machine's seed. */
export function fillRandomly({ memory, random }: ProgramContext, messages: readonly Message[]): void {
  for (const { address, lengthBytes } of messages)
    memory.write(
      address,
      Uint8Array.from({ length: lengthBytes }, () => random.below(256)),
    );
}

/** The statistics are read shortly before the start, after everything charged for waiting for it. */
const leadPs = 1_000;
/** Time from the agreement until the start: the exchange's latency, and a final wait while awake. */
const noticeExchanges = 5;
const awakePs = 20_000_000;

async function transfer(
  program: ProgramContext,
  side: CompareSide,
  messages: readonly Message[],
  label: string,
  announcesStart = false,
): Promise<SideTransfer> {
  const { cpu, exchange, meter } = program;
  await side.prepare(messages);
  await barrier(program, `${label} prepared`);
  const startPs = await agreeOnStart(program, label);
  if (announcesStart && program.node === 0) announceStart(program, startPs - leadPs);
  meter.beginAt(startPs - leadPs);
  let endPs = startPs;
  if (side.isActive) {
    await waitUntil(cpu, startPs);
    await side.run(messages);
    await cpu.settle();
    endPs = cpu.localPs;
    meter.end();
    await exchange.put(endLabel, true);
  }
  await exchange.take(endLabel);
  if (!side.isActive) await exchange.put(endLabel, true);
  const spent = meter.spent();
  if (spent === undefined) throw new InvariantError('meter', 'not read', 'read at the start and at the end');
  return { isActive: side.isActive, startPs, endPs, spent };
}

/** Host 0 names an instant, early enough for host 1 to receive it before. */
async function agreeOnStart({ cpu, exchange, host, node }: ProgramContext, label: string): Promise<number> {
  if (node !== 0) return Number(await exchange.take(`${label} starts`));
  const { clockMHz } = host.config.core;
  const noticePs = noticeExchanges * exchange.latencyPs + awakePs;
  const cyclePs = 1e6 / clockMHz;
  const startPs = Math.ceil(Math.ceil((cpu.localPs + noticePs) / cyclePs) * cyclePs);
  await exchange.put(`${label} starts`, startPs);
  return startPs;
}

/** Sleeps, and wakes in time. */
async function waitUntil(cpu: CoreThread, startPs: number): Promise<void> {
  const sleepPs = startPs - awakePs - cpu.localPs;
  if (sleepPs > 0) await cpu.sleep(sleepPs);
  const { clock } = cpu.core;
  cpu.charge('application', Math.max(0, clock.cycleAtOrAfter(startPs) - clock.cycleAtOrAfter(cpu.localPs)));
  await cpu.settle();
}
