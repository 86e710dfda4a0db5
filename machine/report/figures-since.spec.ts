import { expect, it } from 'vitest';
import { figuresSince } from './figures-since.ts';
import type { Report } from './schema.ts';

/** A report with only these figures. */
const report = (doorbells: number, opcodes: object, busyPs: number): Report =>
  ({
    nodes: [
      {
        hca: { doorbells: { send: doorbells }, caches: { mtt: { hits: doorbells } } },
        interrupts: [{ vector: 3 }],
      },
    ],
    wire: [{ from: 1, to: 0, busyPs, opcodes }],
  }) as unknown as Report;

it('figures since an earlier report are the later ones minus the earlier ones', () => {
  const before = report(5, { SEND_ONLY: { packets: 2 } }, 100);
  const after = report(12, { SEND_ONLY: { packets: 6 }, ACKNOWLEDGE: { packets: 1 } }, 250);
  expect(figuresSince(before, after)).toEqual({
    nodes: [{ hca: { doorbells: { send: 7 }, caches: { mtt: { hits: 7 } } }, interrupts: [{ vector: 3 }] }],
    wire: [
      { from: 1, to: 0, busyPs: 150, opcodes: { SEND_ONLY: { packets: 4 }, ACKNOWLEDGE: { packets: 1 } } },
    ],
  });
  expect(figuresSince(after, after).wire[0]!.busyPs).toBe(0);
});

it('keeps the nodes and ports of a cable', () => {
  const wire = [{ from: 4, fromPort: 3, to: 1, toPort: 2, packets: 7 }];
  const report = { nodes: [], wire } as unknown as Report;
  expect(figuresSince(report, report).wire).toEqual([{ ...wire[0]!, packets: 0 }]);
});

it('finds the earlier row of a vector by its number, because lists have only the vectors used so far', () => {
  const withInterrupts = (interrupts: object[]): Report =>
    ({ nodes: [{ interrupts }], wire: [] }) as unknown as Report;
  const before = withInterrupts([{ vector: 3, sent: 10 }]);
  const after = withInterrupts([
    { vector: 1, sent: 4 },
    { vector: 3, sent: 11 },
  ]);
  expect(figuresSince(before, after).nodes[0]!.interrupts).toEqual([
    { vector: 1, sent: 4 },
    { vector: 3, sent: 1 },
  ]);
});

it('does not subtract findings, such as an address', () => {
  const race = { program: { address: 0x1000, atPs: 7 }, device: { wrId: 5 } };
  const unownedAccesses = { count: 1, first: [{ address: 0x2000 }] };
  const report = { nodes: [{ races: [race], unownedAccesses }], wire: [] } as unknown as Report;
  expect(figuresSince(report, report).nodes).toEqual([{ races: [race], unownedAccesses }]);
});
