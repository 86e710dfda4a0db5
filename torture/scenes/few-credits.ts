/**
 * WRITEs of any alignment, each followed at once by a READ of the same bytes, both ways, over PCIe links whose ends have few credits, short fifos,
 * and slow or shuffled answers. READs return the written bytes, which remain in memory.
 *
 *     own source ── WRITE ──► peer's target ── READ ──► own echo          both sides at once, on several QPs
 */
import type { Draft, Draws, ParameterValues, Stage } from './language/index.ts';
import { connect, patternOf, READ, scene, times, WRITE } from './language/index.ts';

interface Args {
  readonly qpCount: number;
  readonly pathMtu: number;
  /** Length and offset in its slot of each WRITE. */
  readonly writes: readonly (readonly [lengthBytes: number, offset: number])[];
}

/** Room of one WRITE, on any of the three parts of the area. */
const slotBytes = 16 * 1024;

/**
 * Draws a link with some limits as small as the standard allows, or a little larger; the others are those of the
 * default machine.
 */
export function drawLink(random: Draws): ParameterValues {
  const maxPayloadBytes = random.oneOf([128, 256, 256, 512]);
  // The largest TLP, at any alignment: its dwords, four to a credit.
  const largest = Math.ceil((maxPayloadBytes / 4 + 1) / 4);
  const data = (): number => largest + random.below(1 + random.below(2 * largest));
  const headers = (): number => (random.chance(0.3) ? 1 : 1 + random.below(20));
  const writeLatencyPs = random.chance(0.5) ? 80_000 : random.below(3_000_000);
  const scarceShare = random.oneOf([0.15, 0.4, 1]);
  const enumerated = random.oneOf([128, maxPayloadBytes, maxPayloadBytes]);
  const readLatencyPs = writeLatencyPs + random.below(1_000_000);
  /** Parameters that are scarce together or not at all. */
  const scarce: readonly Readonly<Record<string, () => number | string>>[] = [
    {
      'pcie.link.generation': () => 1 + random.below(5),
      'pcie.link.lanes': () => random.oneOf([1, 2, 4, 8]),
    },
    { 'pcie.enumeration.maxReadRequestBytes': () => random.oneOf([128, 256, 512, 1024, 4096]) },
    { 'pcie.link.updateFcPercent': () => random.oneOf([0, 50, 75, 90, 100, 100]) },
    { 'pcie.rootPort.postedHeaders': headers },
    { 'pcie.rootPort.postedData': data },
    { 'pcie.rootPort.nonPostedHeaders': headers },
    { 'pcie.endpointPort.postedHeaders': headers },
    { 'pcie.endpointPort.postedData': data },
    { 'pcie.endpointPort.completionHeaders': headers, 'pcie.endpointPort.completionData': data },
    { 'pcie.endpointPort.postedFifoTlps': () => random.oneOf([1, 2, 4]) },
    { 'pcie.endpointPort.transmitBufferTlps': () => random.oneOf([1, 2, 64]) },
    { 'pcie.rootPort.completionFifoTlps': () => random.oneOf([1, 2, 4]) },
    { 'pcie.rootComplex.outstandingReadCount': () => 1 + random.below(8) },
    { 'pcie.rootComplex.completionOrder': () => 'shuffled' },
    { 'dma.tagCount': () => random.oneOf([1, 2, 8, 64]) },
    { 'wire.speed': () => 'SDR', 'wire.lanes': () => random.oneOf(['1', '4']) },
  ];
  const drawn = scarce.flatMap((together) =>
    random.chance(scarceShare)
      ? Object.entries(together).map(([path, value]) => [path, value()] as const)
      : [],
  );
  return {
    'pcie.link.maxPayloadBytes': maxPayloadBytes,
    'pcie.enumeration.maxPayloadBytes': enumerated,
    'pcie.rootComplex.writeLatencyPs': writeLatencyPs,
    'pcie.rootComplex.readLatencyPs': readLatencyPs,
    ...Object.fromEntries(drawn),
  };
}

function draw(random: Draws): Draft<Args> {
  const count = 2 + random.below(9);
  const args = {
    qpCount: 1 + random.below(3),
    pathMtu: random.oneOf([1, 1, 3, 5]),
    writes: times(count, () => {
      const lengthBytes = 1 + random.below(random.chance(0.3) ? 300 : slotBytes - 4096);
      return [lengthBytes, random.chance(0.4) ? 64 * random.below(64) : random.below(4096)] as const;
    }),
  };
  return { args, set: { 'host.memory.sizeMib': 64, ...drawLink(random) } };
}

async function player(stage: Stage<Args>): Promise<void> {
  const { node } = stage;
  const { qpCount, pathMtu, writes } = stage.args;
  const partBytes = writes.length * slotBytes;
  const side = await connect(stage, { areaBytes: 3 * partBytes, qpCount, cqEntries: 63, mtuCode: pathMtu });
  const placeOf = (part: number, write: number): number =>
    part * partBytes + write * slotBytes + writes[write]![1];
  const bytesOf = (from: number, write: number) => patternOf(2 * write + from, writes[write]![0]);
  const expect = (what: string, part: number, from: number): void => {
    for (const write of writes.keys())
      side.expect(`${what} of WRITE ${write}`, placeOf(part, write), bytesOf(from, write));
  };
  for (const write of writes.keys()) side.fill(bytesOf(node, write), placeOf(0, write));
  await stage.meet('filled');
  for (const [write, [lengthBytes]] of writes.entries()) {
    const there = { qp: write % qpCount, lengthBytes, remoteOffset: placeOf(1, write) };
    side.post(2 * write, WRITE, { ...there, offset: placeOf(0, write) });
    side.post(2 * write + 1, READ, { ...there, offset: placeOf(2, write) });
  }
  await side.expectWell(2 * writes.length);
  expect('what came back', 2, node);
  await stage.meet('over');
  expect('what the peer left', 1, 1 - node);
}

export const fewCredits = scene({
  about: 'WRITEs and READs of the same bytes right after them, over PCIe links with few credits',
  draw,
  programs: [player, player],
});
