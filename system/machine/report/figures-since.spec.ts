import { expect, it } from 'vitest';
import { figuresSince } from './figures-since.ts';
import type { Report } from './schema.ts';

/** A report with these figures alone. */
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

it('figures since an earlier report are those of the later one less what they were', () => {
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
