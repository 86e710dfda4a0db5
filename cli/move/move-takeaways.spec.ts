import { expect, it } from 'vitest';
import type { CompareRow } from '../../experiments/runs/compare-run.ts';
import type { CompareNetwork } from '../../experiments/workloads/compare-networks.ts';
import type { ComparePath } from '../../experiments/workloads/compare-plan.ts';
import type { HostSpent } from '../../machine/node/transfer-meter.ts';
import { takeaways, takeawayText } from './move-takeaways.ts';

const spent = (changes: Partial<HostSpent>): HostSpent => ({
  cycles: {},
  cyclesTotal: 0,
  interrupts: 0,
  systemCalls: 0,
  contextSwitches: 0,
  copies: 0,
  copiedBytes: 0,
  memory: { total: 0 } as HostSpent['memory'],
  tlps: 0,
  linkBytes: 0,
  ...changes,
});

const row = (
  path: ComparePath,
  latencyPs: number,
  bytesPerSecond: number,
  hosts: readonly [HostSpent, HostSpent],
): CompareRow => ({
  path,
  sizeBytes: 1000,
  messages: 1,
  totalBytes: 1000,
  latencyPs,
  durationPs: 1,
  bytesPerSecond,
  hosts,
  isActive: [true, true],
  sha256: ['', ''],
  isEqual: true,
  isBalanced: true,
});

const memory = (total: number): HostSpent['memory'] => ({ total }) as HostSpent['memory'];

const rows: readonly CompareRow[] = [
  row('pio', 100e6, 8e6, [spent({ cyclesTotal: 300_000 }), spent({ cyclesTotal: 200_000 })]),
  row('sockets', 9e6, 100e6, [
    spent({ cyclesTotal: 20_000, systemCalls: 1, interrupts: 3, copiedBytes: 1000, memory: memory(4000) }),
    spent({ cyclesTotal: 14_000, systemCalls: 2, interrupts: 2, copiedBytes: 1000, memory: memory(2500) }),
  ]),
  row('send', 3.5e6, 300e6, [spent({}), spent({})]),
  row('write', 3e6, 1500e6, [
    spent({ cyclesTotal: 7000, memory: memory(1100) }),
    spent({ memory: memory(1000) }),
  ]),
  row('read', 2.5e6, 400e6, [spent({}), spent({ cyclesTotal: 6000 })]),
];

it('states the results of the rows in five sentences, each figure computed from them', () => {
  expect(takeawayText(rows, 'infiniband').split('\n')).toEqual([
    '1. Zero copy: by sockets the processors copy each byte 2 times between programs and kernels, by RDMA WRITE 0 times; 6.5 bytes cross the memory buses for each byte moved, against 2.1.',
    '2. Kernel bypass: the same bytes take 3 system calls and 5 interrupts by sockets, 0 and 0 by RDMA WRITE: the program rings the doorbell itself.',
    '3. One side works: a byte costs 34 processor cycles of both hosts by sockets, 7 by RDMA WRITE, and the other side of WRITE and READ none.',
    "4. Latency of one message: 9.000 µs by sockets, 3.500 µs by SEND, 3.000 µs by RDMA WRITE, 2.500 µs by RDMA READ. WRITE is behind READ because both are timed until their completion: WRITE's bytes are not inline in the request, so the card reads them from memory before it sends them, and it waits for the ACK.",
    '5. Without DMA the processor carries every word: programmed I/O reaches 8.0 MB/s at 500 cycles a byte, RDMA WRITE 1.50 GB/s.',
  ]);
});

it('shows the cost of the passive side, if any', () => {
  const busy = rows.map((each) =>
    each.path === 'write' ? { ...each, hosts: [each.hosts[0], spent({ cyclesTotal: 1234 })] as const } : each,
  );
  expect(takeaways(busy, 'infiniband')[2]).toContain('the other side of WRITE and READ 1,234.');
});

it('omits paths that did not run', () => {
  expect(takeaways([], 'infiniband')).toEqual([]);
  expect(
    takeaways(
      rows.filter(({ path }) => path !== 'pio'),
      'infiniband',
    ),
  ).toHaveLength(4);
  expect(
    takeaways(
      rows.filter(({ path }) => path !== 'sockets'),
      'infiniband',
    ).map((text) => text.slice(0, 11)),
  ).toEqual(['Without DMA']);
});

it('explains why READ is ahead of WRITE if it is, and omits the sentence otherwise', () => {
  const hosts: CompareRow['hosts'] = [spent({}), spent({})];
  const rows = (writePs: number, readPs: number, network: CompareNetwork = 'infiniband'): string =>
    takeaways(
      [
        row('sockets', 9e6, 1, hosts),
        row('send', 3e6, 1, hosts),
        row('write', writePs, 1, hosts),
        row('read', readPs, 1, hosts),
      ],
      network,
    ).join(' ');
  expect(rows(2.92e6, 2.6e6)).toContain('not inline in the request');
  expect(rows(2.92e6, 2.6e6)).toContain('it waits for the ACK');
  expect(rows(2.92e6, 2.6e6, 'iwarp')).toContain('until a READ of no bytes after it is answered');
  expect(rows(2.92e6, 2.6e6, 'iwarp')).not.toContain('ACK');
  for (const readPs of [2.92e6, 3e6]) expect(rows(2.92e6, readPs)).not.toContain('inline');
});
