/**
 * WRITEs of any alignment, each with a READ of the very same bytes right behind it, both ways, over PCIe links whose ends have few
 * credits, short fifos, and slow or shuffled answers. What comes back is what was written, and what was written stays.
 *
 *     own source ── WRITE ──► peer's target ── READ ──► own echo          both sides at once, on several QPs
 */

import { barrier } from '../../experiments/workloads/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { ParameterValues } from '../../machine/profile/index.ts';
import type { Random } from '../../sim/index.ts';
import { IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE, type PortAttr } from '../../userlib/index.ts';
import { completionsOf, connectWithPeer, failuresOf, leave, post, requestOf } from './pair.ts';
import type { Scene, SceneDraft } from './scene.ts';

interface Args {
  readonly qpCount: number;
  /** IBV_MTU_256 is 1, IBV_MTU_4096 is 5. */
  readonly pathMtu: number;
  /** Length and offset in its slot of each WRITE. */
  readonly writes: readonly (readonly [lengthBytes: number, offset: number])[];
}

/** Room of one WRITE, on any of the three parts of the area. */
const slotBytes = 16 * 1024;

const one = <T>(random: Random, ...choices: readonly T[]): T => choices[random.below(choices.length)]!;

/** A link with some ends as small as the standard allows, or a little larger, and the rest of it as in the default machine. */
export function drawLink(random: Random): ParameterValues {
  const maxPayloadBytes = one(random, 128, 256, 256, 512);
  // The largest TLP, at any alignment: its dwords, four to a credit.
  const largest = Math.ceil((maxPayloadBytes / 4 + 1) / 4);
  const data = (): number => largest + random.below(1 + random.below(2 * largest));
  const headers = (): number => (random.chance(0.3) ? 1 : 1 + random.below(20));
  const writeLatencyPs = random.chance(0.5) ? 80_000 : random.below(3_000_000);
  const scarceShare = one(random, 0.15, 0.4, 1);
  const scarce = (values: () => ParameterValues): ParameterValues =>
    random.chance(scarceShare) ? values() : {};
  return {
    'pcie.link.maxPayloadBytes': maxPayloadBytes,
    'pcie.enumeration.maxPayloadBytes': one(random, 128, maxPayloadBytes, maxPayloadBytes),
    'pcie.rootComplex.writeLatencyPs': writeLatencyPs,
    'pcie.rootComplex.readLatencyPs': writeLatencyPs + random.below(1_000_000),
    ...scarce(() => ({
      'pcie.link.generation': 1 + random.below(5),
      'pcie.link.lanes': one(random, 1, 2, 4, 8),
    })),
    ...scarce(() => ({ 'pcie.enumeration.maxReadRequestBytes': one(random, 128, 256, 512, 1024, 4096) })),
    ...scarce(() => ({ 'pcie.link.updateFcPercent': one(random, 0, 50, 75, 90, 100, 100) })),
    ...scarce(() => ({ 'pcie.rootPort.postedHeaders': headers() })),
    ...scarce(() => ({ 'pcie.rootPort.postedData': data() })),
    ...scarce(() => ({ 'pcie.rootPort.nonPostedHeaders': headers() })),
    ...scarce(() => ({ 'pcie.endpointPort.postedHeaders': headers() })),
    ...scarce(() => ({ 'pcie.endpointPort.postedData': data() })),
    ...scarce(() => ({
      'pcie.endpointPort.completionHeaders': headers(),
      'pcie.endpointPort.completionData': data(),
    })),
    ...scarce(() => ({ 'pcie.endpointPort.postedFifoTlps': one(random, 1, 2, 4) })),
    ...scarce(() => ({ 'pcie.endpointPort.transmitBufferTlps': one(random, 1, 2, 64) })),
    ...scarce(() => ({ 'pcie.rootPort.completionFifoTlps': one(random, 1, 2, 4) })),
    ...scarce(() => ({ 'pcie.rootComplex.outstandingReadCount': 1 + random.below(8) })),
    ...scarce(() => ({ 'pcie.rootComplex.completionOrder': 'shuffled' })),
    ...scarce(() => ({ 'dma.tagCount': one(random, 1, 2, 8, 64) })),
    ...scarce(() => ({ 'wire.speed': 'SDR', 'wire.lanes': one(random, '1', '4') })),
  };
}

function draw(random: Random): SceneDraft {
  const writeCount = 2 + random.below(9);
  const args: Args = {
    qpCount: 1 + random.below(3),
    pathMtu: one(random, 1, 1, 3, 5),
    writes: Array.from({ length: writeCount }, () => {
      const lengthBytes = 1 + random.below(random.chance(0.3) ? 300 : slotBytes - 4096);
      return [lengthBytes, random.chance(0.4) ? 64 * random.below(64) : random.below(4096)] as const;
    }),
  };
  return {
    args: args as unknown as JsonValue,
    set: { 'host.memory.sizeMib': 64, ...drawLink(random) },
    hasDrawnHardware: false,
  };
}

/** What a side writes in its WRITE of this number: no two neighbours, writes or sides are alike. */
const byteAt = (node: number, write: number, index: number): number =>
  (1 + 101 * node + 37 * write + 7 * index + (index >> 8)) & 0xff;

export async function side(program: ProgramContext): Promise<JsonValue> {
  const { qpCount, pathMtu, writes } = program.args as unknown as Args;
  const { memory, node } = program;
  const partBytes = writes.length * slotBytes;
  const found = await connectWithPeer(program, {
    areaBytes: 3 * partBytes,
    qpCount,
    cqEntries: 63,
    attributes: { pathMtu: pathMtu as PortAttr['activeMtu'] },
  });
  const { area, qps } = found;
  const placeOf = (write: number): number => write * slotBytes + writes[write]![1];
  const bytesOf = (from: number, write: number): Uint8Array =>
    Uint8Array.from({ length: writes[write]![0] }, (_, index) => byteAt(from, write, index));
  for (const write of writes.keys()) memory.write(area.address + placeOf(write), bytesOf(node, write));
  await barrier(program, 'filled');
  for (const [write, [lengthBytes]] of writes.entries()) {
    const qp = qps[write % qpCount]!;
    const offset = placeOf(write);
    const remoteOffset = partBytes + offset;
    post(qp, requestOf(found, 2 * write, IBV_WR_RDMA_WRITE, { offset, lengthBytes, remoteOffset }));
    const echo = { offset: 2 * partBytes + offset, lengthBytes, remoteOffset };
    post(qp, requestOf(found, 2 * write + 1, IBV_WR_RDMA_READ, echo));
  }
  const ended = await completionsOf(found, 2 * writes.length);
  const wrong = failuresOf(ended);
  if (ended.length < 2 * writes.length)
    wrong.push(`${ended.length} of ${2 * writes.length} completions came`);
  const compare = (what: string, part: number, from: number): void => {
    for (const write of writes.keys()) {
      const expected = bytesOf(from, write);
      const there = memory.read(area.address + part * partBytes + placeOf(write), expected.length);
      const at = there.findIndex((byte, index) => byte !== expected[index]);
      if (at >= 0)
        wrong.push(
          `${what} of WRITE ${write}: byte ${at} of ${expected.length} is ${there[at]}, and not ${expected[at]}`,
        );
    }
  };
  compare('what came back', 2, node);
  await barrier(program, 'over');
  compare('what the peer left', 1, 1 - node);
  await leave(found);
  return wrong;
}

export const fewCredits: Scene = {
  name: 'few-credits',
  about: 'WRITEs and READs of the same bytes right behind them, over PCIe links with few credits',
  module: import.meta.url,
  programs: [
    { node: 0, exportName: 'side' },
    { node: 1, exportName: 'side' },
  ],
  draw,
  judge: ({ results }) =>
    results.flatMap((wrong, node) => (wrong as string[]).map((what) => `program ${node}: ${what}`)),
};
