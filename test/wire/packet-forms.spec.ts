/**
 * Fields or bytes on the cable: the reports are equal except for that parameter, in every partition, also if packets are lost,
 * damaged, copied and reordered. An Ethernet cable always carries bytes.
 */
import { describe, expect, it, vi } from 'vitest';
import type { MachineOptions } from '../../machine/machine.ts';
import type { Partition } from '../../machine/partition/placement.ts';
import type { Report } from '../../machine/report/schema.ts';
import { expectBalanced } from '../expectations.ts';
import { bytesOf, type Outcome, programsOf, runPrograms } from '../machines.ts';

vi.setConfig({ testTimeout: 240_000 });

const faults = [
  { packet: 'corrupted', nth: '40-42' },
  { packet: 'lost', nth: 90 },
  { packet: 'duplicated', nth: '120-130', delay: '1us' },
  { packet: 'reordered', nth: 150, by: 2, delay: '10us' },
];

function run(form: 'fields' | 'bytes', more: MachineOptions = {}): Promise<Outcome> {
  const args = { qps: 3, rounds: 4 };
  return runPrograms(
    [...programsOf('mixture', 'polling', args), ...programsOf('mixture', 'sleeping', args)],
    { ...more, set: { ...more.set, 'wire.packetForm': form } },
  );
}

let reference: Promise<Outcome> | undefined;
const fieldsRun = (): Promise<Outcome> => (reference ??= run('fields'));

/** A report without the parts that the parameter itself changes. */
function withoutForm(report: Report): string {
  const text = bytesOf(report);
  return text
    .replaceAll(report.configHash, 'HASH')
    .replaceAll(/,?\s*"wire\.packetForm": "\w+"\s*/g, '')
    .replaceAll(/"packetForm": "\w+"/g, '');
}

describe('fields and bytes', () => {
  it.each<Partition>(['single', 'per-device'])(
    'come to the same report in partition %s',
    async (partition) => {
      const [fields, bytes] = [await fieldsRun(), await run('bytes', { partition })];
      expect(bytes.results).toEqual(fields.results);
      expectBalanced(bytes.report);
      expect(withoutForm(bytes.report)).toBe(withoutForm(fields.report));
    },
  );

  it('are equal if packets are damaged, lost, copied and reordered', async () => {
    const [fields, bytes] = [await run('fields', { faults }), await run('bytes', { faults })];
    expect(bytes.results).toEqual(fields.results);
    expectBalanced(bytes.report);
    expect(withoutForm(bytes.report)).toBe(withoutForm(fields.report));
    expect(bytes.report.wire.map(({ corrupted, lost }) => [corrupted, lost])).toContainEqual([3, 1]);
  });

  it.each(['v1', 'v2'])(
    'are one on Ethernet, whose receivers check and read the bytes of RoCE %s',
    async (roce) => {
      const set = { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.roce': roce };
      // Only the ICRC is wrong: nothing but the bytes shows it.
      const damaged = { packet: 'corrupted', crc: 'icrc', only: 'requests', nth: '40-42' };
      const plan = [...faults.filter(({ packet }) => packet !== 'corrupted'), damaged];
      const [fields, bytes] = [
        await run('fields', { set, faults: plan }),
        await run('bytes', { set, faults: plan }),
      ];
      expect(bytes.results).toEqual(fields.results);
      expectBalanced(bytes.report);
      expect(withoutForm(bytes.report)).toBe(withoutForm(fields.report));
      const droppedOf = ({ report }: Outcome) => report.nodes[1]!.hca.ethernet!.dropped['packetDamaged'];
      expect([fields, bytes].map(droppedOf)).toEqual([3, 3]);
    },
  );
});
