/**
 * "The other way": one message by sockets, by programmed I/O, by the system's DMA controller or by RDMA, and the work
 * of each core for it.
 */
import { Machine, type ProgramContext } from '../../browser.ts';
import {
  type CompareArgs,
  type CompareBytes,
  comparedSide,
  fillRandomly,
  machineOfRow,
  pathTitles,
  type SideResult,
  type SideTransfer,
} from '../../experiments/workloads/index.ts';
import { labelOf } from '../../explain/timeline/index.ts';
import type { Timeline } from '../../machine/timeline/index.ts';
import type { CoreWork, TransferHost, TransferPicture, TransferQuestion } from '../protocol.ts';

/** Messages before the displayed one, which therefore has no first-time costs. */
const roundsBefore = 1;

/** Bytes filled from the seed; the digest compares all of them. */
const plainBytes: CompareBytes = {
  fill: fillRandomly,
  digest: (pieces) => pieces.map((piece) => Array.from(piece, hexOf).join('')).join(),
};
const hexOf = (byte: number): string => byte.toString(16).padStart(2, '0');

/** Greatest time by which a core charges its work ahead. */
const aheadPs = 10_000_000;

interface Side extends SideResult {
  /** Latency between the programs of the two hosts. */
  readonly exchangePs: number;
}

const side =
  (node: 0 | 1) =>
  async (program: ProgramContext<CompareArgs>): Promise<Side> => {
    const result: SideResult = await comparedSide(program, node, plainBytes);
    return { ...result, exchangePs: program.exchange.latencyPs };
  };

/** @throws ConfigurationError naming the error in the machine */
export async function transfer({ machine, path, sizeBytes }: TransferQuestion): Promise<TransferPicture> {
  const { profile, set, seed } = machine;
  await using simulated = await Machine.create({
    profile,
    set: { ...set, ...machineOfRow({ path }) },
    seed,
    analysis: { timeline: { categories: ['cores', 'packets'] } },
  });
  const args: CompareArgs = {
    path,
    sizeBytes,
    totalBytes: sizeBytes,
    latencyRounds: roundsBefore,
    file: null,
  };
  await simulated.load({ node: 0, name: 'sender', run: side(0), args });
  await simulated.load({ node: 1, name: 'receiver', run: side(1), args });
  await simulated.run();
  const [sender, receiver] = await simulated.results<[Side, Side]>();
  const { checks } = await simulated.report();
  const sides = [sender.stream, receiver.stream] as const;
  const { startPs } = sender.stream;
  const endPs = (receiver.stream.isActive ? receiver : sender).stream.endPs;
  // A host's ledgers are read when it has ended and knows that its peer has ended.
  const [sentPs, receivedPs] = [sender.stream.endPs, receiver.stream.endPs];
  const readPs = [
    Math.max(sentPs, receivedPs + sender.exchangePs),
    Math.max(receivedPs, sentPs + sender.exchangePs),
  ] as const;
  const timeline = (await simulated.timeline()).between(startPs, Math.max(...readPs) + aheadPs);
  const corePs = 1e6 / simulated.config.host.core.clockMHz;
  const spanOf = (node: 0 | 1): Span => ({ fromPs: startPs, toPs: readPs[node], corePs });
  return {
    path,
    title: pathTitles[path],
    latencyPs: endPs - startPs,
    hosts: [hostOf(timeline, 0, sides[0], spanOf(0)), hostOf(timeline, 1, sides[1], spanOf(1))],
    cable: cableOf(timeline, startPs, Math.max(...readPs)),
    isEqual: sender.digest === receiver.digest,
    isBalanced: checks.balanced,
  };
}

/** Time between the readings of a host's ledgers. */
interface Span {
  readonly fromPs: number;
  readonly toPs: number;
  /** Duration of a cycle. */
  readonly corePs: number;
}

function hostOf(
  timeline: Timeline,
  node: 0 | 1,
  { isActive, spent }: SideTransfer,
  span: Span,
): TransferHost {
  const work: CoreWork[] = [];
  const drawn: Record<string, number> = {};
  const ledger = spent.cycles as Readonly<Record<string, number>>;
  for (const record of timeline.records()) {
    const { kind, track, atPs, durationPs } = record;
    if (kind !== 'core' || track.process !== `host${node}`) continue;
    const fromPs = Math.max(0, Number(atPs) - span.fromPs);
    const toPs = Number(atPs) + durationPs - span.fromPs;
    if (toPs <= fromPs) continue;
    const cause = labelOf(record);
    const cycles = (toPs - fromPs) / span.corePs;
    const sum = (drawn[cause] ?? 0) + cycles;
    // A core charges its work ahead of time: after a reading, only the work charged at the reading belongs to it.
    if (fromPs >= span.toPs - span.fromPs && Math.round(sum) > (ledger[cause] ?? 0)) continue;
    drawn[cause] = sum;
    work.push({ core: Number(track.name.replace(/^\D+/, '')), fromPs, toPs, cause, cycles });
  }
  const { cyclesTotal, systemCalls, interrupts, contextSwitches, copiedBytes } = spent;
  return {
    isActive,
    work,
    cycles: ledger,
    cyclesTotal,
    systemCalls,
    interrupts,
    contextSwitches,
    copiedBytes,
  };
}

const cableOf = (timeline: Timeline, startPs: number, toPs: number): TransferPicture['cable'] =>
  [...timeline.records()]
    .filter(({ kind, atPs }) => (kind === 'packet' || kind === 'frame') && Number(atPs) < toPs)
    .map((record) => {
      const fromPs = Number(record.atPs) - startPs;
      return { fromPs, toPs: fromPs + record.durationPs, text: labelOf(record) };
    });
